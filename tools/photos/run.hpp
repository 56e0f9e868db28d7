#pragma once

/// @file
/// Runs the work of one allocator once.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "contest/compared_allocator.hpp"
#include "contest/measurement.hpp"
#include "options.hpp"

namespace tensorpool::photos {

/// The result of one picture.
struct Outcome {
    bool done = false;
    std::string reason;  ///< why it failed
    std::uint64_t pixels = 0;
};

struct Run {
    Measurement measured;
    std::vector<Outcome> outcomes;  ///< in the order of the pictures
    std::string report;             ///< of the pool or the Context; empty for others
};

/// Returns the folder of this allocator's results.
std::filesystem::path folder_of(const ComparedAllocator& allocator, const Options& options);

/// Runs the work in a process of its own, with its results in `folder_of`, which it creates.
/// `on_picture` is called with the number of each picture when it ends. Throws std::runtime_error
/// if the process fails, or did not use the library that was to be preloaded.
Run run(const ComparedAllocator& allocator, const std::vector<std::filesystem::path>& files,
        const Options& options, const std::function<void(std::size_t)>& on_picture);

}  // namespace tensorpool::photos
