#pragma once

/// @file
/// What a caching allocator can be told when it is made. All sizes are bytes.

#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

/// What of its calls a caching allocator keeps on the timeline. Growths, give-backs, pressure with
/// its steps, and refusals stand there always.
enum class TimelineSet : std::uint8_t {
    none = 0,
    profile = 1,      ///< bytes in use, whenever the most so far rose by over a sixteenth
    allocations = 2,  ///< blocks out of memory that the device gave for them
    recycles = 4,     ///< blocks out of memory that was free already
    releases = 8,     ///< blocks that came back
    large_only = 16,  ///< of the three before, only blocks above 1 MiB
};
constexpr TimelineSet operator|(TimelineSet one, TimelineSet other) noexcept {
    return static_cast<TimelineSet>(static_cast<std::uint8_t>(one) |
                                    static_cast<std::uint8_t>(other));
}
constexpr bool contains(TimelineSet set, TimelineSet part) noexcept {
    return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(part)) != 0;
}

/// How an allocator knows that a stream is captured.
enum class CaptureDetection : std::uint8_t {
    /// It asks the backend at each allocation, where that can capture at all.
    asked,
    /// The program says so, by `CachingAllocator::begin_capture`; saves that question.
    announced,
};

struct CachingOptions {
    /// Shown in statistics and messages; at most 47 bytes of it are kept.
    std::string name = "caching";
    StorageKind storage = StorageKind::private_storage;
    /// Of what the device recommends (`DeviceAbilities::recommended_bytes`), the part of which the
    /// allocator never holds more; 0: no limit of its own. Up to 2.
    double hard_limit = 0;
    /// The part from which on it gives free memory back by age before it takes more; 0: none. At
    /// most `hard_limit`, where that is set.
    double soft_limit = 0;
    /// A larger request fails at once; 0: none.
    std::size_t max_allocation = 0;
    /// A request so large gets a slab of its own that is never split, where slabs cannot grow.
    std::size_t oversize_bytes = std::size_t{64} << 20;
    /// Such a slab, free again, serves a request that is smaller by so much at most; below 2 MiB,
    /// by that: slabs are multiples of it.
    std::size_t oversize_slack_bytes = std::size_t{32} << 20;
    /// Slabs that grow and shrink in place, where the device has virtual memory.
    bool expandable = true;
    CaptureDetection captures = CaptureDetection::asked;
    TimelineSet timeline = TimelineSet::none;
};

}  // namespace tensorpool
