#pragma once

/// @file
/// One contender's work, once.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "contest/contender.hpp"
#include "contest/measurement.hpp"
#include "options.hpp"

namespace tensorpool::photos {

/// What became of one picture.
struct Outcome {
    bool done = false;
    std::string reason;  ///< when it failed
    std::uint64_t pixels = 0;
};

struct Run {
    Measurement measured;
    std::vector<Outcome> outcomes;  ///< in the order of the pictures
    std::string report;             ///< the pool's or the Context's; empty for others
};

/// The folder that holds this contender's results.
std::filesystem::path folder_of(const Contender& contender, const Options& options);

/// Runs the work in a process of its own, into `folder_of`, which it makes. `on_picture` is called
/// with the number of each picture as it ends. Throws std::runtime_error when the process fails, or
/// did not run from the library that was to be preloaded.
Run run(const Contender& contender, const std::vector<std::filesystem::path>& files,
        const Options& options, const std::function<void(std::size_t)>& on_picture);

}  // namespace tensorpool::photos
