#pragma once

/// @file
/// The statistics of an arena or a scratch. All sizes are bytes.

#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The statistics of one arena or scratch at one moment. They are exact if no call is under way.
/// Otherwise each value is one that held while the snapshot was taken.
struct ArenaStatistics {
    /// The version of this structure.
    static constexpr std::uint32_t current_version = 3;

    /// What the memory belongs to.
    enum class Kind : std::uint8_t {
        /// An arena with memory of its own.
        growing,
        /// An arena over its owner's memory.
        buffer,
        /// An arena without memory, which measures what a run needs.
        measuring,
        /// A thread's scratch.
        scratch,
    };

    /// The version of the structure that was filled in.
    std::uint32_t version = current_version;
    /// The name, zero-terminated.
    char name[48] = {};
    /// What the memory belongs to.
    Kind kind = Kind::growing;
    /// A number that no other pool or arena of the process ever has.
    std::uint64_t id = 0;
    /// The system's number of the thread whose scratch it is; 0 for an arena.
    std::uint64_t thread = 0;

    /// The total number of allocations.
    std::uint64_t allocations = 0;
    /// How often memory was released: resets, releases to a mark, ends of scopes, and ends of
    /// handles that returned the block at the top.
    std::uint64_t releases = 0;
    /// The bytes allocated and not released, including padding for alignment.
    std::uint64_t used_bytes = 0;
    /// The highest value of `used_bytes` so far.
    std::uint64_t peak_used_bytes = 0;
    /// The committed bytes, or the size of the buffer.
    std::uint64_t capacity_bytes = 0;
    /// The highest value of `capacity_bytes` so far.
    std::uint64_t peak_capacity_bytes = 0;
    /// The reserved address space.
    std::uint64_t reserved_bytes = 0;
    /// The limit of the capacity; 0 means no limit.
    std::uint64_t limit_bytes = 0;
    /// How often memory was committed.
    std::uint64_t growths = 0;
    /// The total bytes committed by growth.
    std::uint64_t grown_bytes = 0;
    /// How often memory was given back to the system.
    std::uint64_t give_backs = 0;
    /// The total bytes given back to the system.
    std::uint64_t given_back_bytes = 0;
    /// The number of requests that failed.
    std::uint64_t refusals = 0;

    /// Returns the bytes in use divided by the capacity, from 0 to 1; 0 if there is no capacity.
    double utilization_ratio() const noexcept {
        return capacity_bytes == 0
                   ? 0.0
                   : static_cast<double>(used_bytes) / static_cast<double>(capacity_bytes);
    }
};

/// Returns one JSON object whose keys are the names of the fields of ArenaStatistics. The kind is a
/// word, such as "growing".
TENSORPOOL_API std::string to_json(const ArenaStatistics& statistics);
/// Returns a report for people: a headline, then a few lines of statistics. It ends with a newline.
TENSORPOOL_API std::string to_text(const ArenaStatistics& statistics);

}  // namespace tensorpool
