#pragma once

/// @file
/// What is reported about the sites that grow. Names come from another process, and each form makes
/// them safe.

#include "formats/profile/named_profile.hpp"
#include "leaks/observation.hpp"

namespace tensorpool::command::leaks {

/// A site that grows.
struct Row {
    ProfileSite site;
    Judgement judged;
    double slope = 0;              ///< bytes per iteration
    double slope_uncertainty = 0;  ///< the standard deviation of `slope` that sampling causes
    std::uint64_t oldest = 0;      ///< iterations since the growth began
    std::uint64_t median_age = 0;  ///< iterations since half of the growth was there
    std::vector<double> live;      ///< of each profile
};

struct Report {
    Pace pace;
    std::uint64_t iterations = 0;
    std::uint64_t profiles = 0;
    double seconds = 0;
    std::uint64_t steady = 0;  ///< sites that do not grow
    std::vector<Row> rows;     ///< leaks first, then those that grow most
    /// The process, and the names of the frames. Only the sites of the rows are included.
    profile::NamedProfile named;

    std::uint64_t leaks() const noexcept;
};

Report judge(const Observation& observation, const Pace& pace);

/// Returns a headline, and a table with the stack of each leak.
std::string to_text(const Report& report, Sizes sizes);
/// Returns one line of JSON.
std::string to_json(const Report& report);

}  // namespace tensorpool::command::leaks
