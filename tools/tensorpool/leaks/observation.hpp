#pragma once

/// @file
/// The profiles of a process at the ends of its iterations, and the verdict from samples whether
/// the memory of a call stack grows from iteration to iteration.

#include <utility>

#include <tensorpool/statistics_reader.hpp>

#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::leaks {

enum class Verdict : std::uint8_t {
    leak,        ///< grows in proportion to the iterations, up to the end of the window
    too_little,  ///< grows, but by too little or too irregularly to tell
    cache,       ///< grows, but less and less
    warm_up,     ///< grew at the beginning of the window only
    steady,      ///< does not grow
};
std::string_view to_string(Verdict verdict) noexcept;

/// What one call stack held at the ends of the iterations. All values are estimates from samples.
struct History {
    std::vector<double> live;       ///< bytes in use
    std::vector<double> allocated;  ///< bytes of all allocations so far
    /// The variance of an estimate of n bytes that were allocated between the first and the last
    /// profile is n times this; see `noise_mean_of`.
    double noise_mean = 0;
};

/// Returns the ratio of the variance of an estimate to the estimate, in bytes, for allocations of
/// so many bytes and blocks by so many samples.
///
/// A sampled block counts as 1 / p blocks, so it adds w = n / p bytes with the variance
/// w * w * (1 - p), which is w * (1 - p) per byte. This is the sampling mean for small blocks, and
/// almost 0 for blocks that are much larger than it, because all of them are sampled.
double noise_mean_of(double allocated_bytes, double allocated_blocks, double samples) noexcept;

struct Judgement {
    Verdict verdict = Verdict::steady;
    double growth = 0;       ///< bytes, from the first profile to the last
    double uncertainty = 0;  ///< the standard deviation of `growth` that sampling causes
    /// The profile from which on the growth survived to the end, and that from which on half of it
    /// did. Indices of `History::live`.
    std::size_t oldest = 0;
    std::size_t median = 0;
};

/// Judges a site. `interval` is the mean distance between samples in bytes.
Judgement judge(const History& history, double interval);

/// Collects profiles. Of all but the last one, only the values of each site are kept.
class Observation {
public:
    /// Adds the profile after `iteration` iterations, which grow from call to call.
    void add(HeapProfile profile, std::uint64_t iteration);

    std::size_t profiles() const noexcept { return iterations_.size(); }
    /// Returns the number of iterations from the first to the last profile.
    std::uint64_t iterations() const noexcept { return iterations_since(0); }
    /// Returns the number of iterations from this profile to the last one; 0 if there is none.
    std::uint64_t iterations_since(std::size_t profile) const noexcept;
    double seconds() const noexcept;
    /// Returns the last profile; an empty one if there is none.
    const HeapProfile& last() const noexcept { return last_; }
    /// Returns the values of each site by its id. All have a value for each profile.
    const std::unordered_map<std::uint64_t, History>& sites() const noexcept { return sites_; }

private:
    void add_noise(History& history, const ProfileSite& site);

    std::vector<std::uint64_t> iterations_;
    std::uint64_t first_unix_ns_ = 0;
    HeapProfile last_;
    std::unordered_map<std::uint64_t, History> sites_;
    std::unordered_map<std::uint64_t, ProfileSite> before_;  // the sites of the profile before
};

/// The time between two calls of `Watch::look`: short, so that a profile shows the end of an
/// iteration, not the middle of the next one.
constexpr std::chrono::milliseconds between_looks{1};

/// When an iteration ends, and how many are observed.
struct Pace {
    double seconds = 0;  ///< after this time; 0: at each mark on the timeline
    std::string mark;    ///< only at marks with this text; "": at all marks
    std::uint64_t iterations = 20;

    bool is_by_marks() const noexcept { return seconds == 0; }
};

/// Takes a profile of one process at the end of each iteration. The first profile is taken at the
/// first mark, or at once if iterations end after a time.
///
/// A profile counts once another iteration has ended. The last one of a process that ends may have
/// been taken when the process had left its loop and freed what the loop kept.
class Watch {
public:
    explicit Watch(Pace pace) : pace_(std::move(pace)) {}

    /// Takes a profile if an iteration has ended since the last call. If several have, their
    /// profiles are left out. Throws AttachError.
    void look(StatisticsReader& process);

    /// Whether the timeline has had a mark that ends an iteration, also before the first `look`.
    bool has_marks() const noexcept { return has_marks_; }
    bool is_complete() const noexcept { return observation_.profiles() > pace_.iterations; }
    const Observation& observation() const noexcept { return observation_; }

private:
    bool has_ended(StatisticsReader& process);
    bool has_time_passed();

    Pace pace_;
    Observation observation_;
    std::uint64_t iterations_ = 0;
    std::optional<HeapProfile> last_;  // does not count yet
    std::uint64_t iterations_of_last_ = 0;
    bool is_first_look_ = true;
    bool has_marks_ = false;
    std::uint64_t last_entry_ = 0;
    std::chrono::steady_clock::time_point next_;
};

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
std::string to_json(const Report& report);

}  // namespace tensorpool::command::leaks
