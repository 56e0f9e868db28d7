#pragma once

/// @file
/// The options of a caching allocator. All sizes are bytes.

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

class Budget;

/// The optional events that a caching allocator adds to the timeline. Growths, give-backs, pressure
/// with its steps, and refusals are always added.
enum class TimelineSet : std::uint8_t {
    /// No optional events.
    none = 0,
    /// The bytes in use, whenever their peak rose by over a sixteenth.
    profile = 1,
    /// Blocks from new memory of the device.
    allocations = 2,
    /// Blocks from free memory of the allocator.
    recycles = 4,
    /// Freed blocks.
    releases = 8,
    /// Only blocks above 1 MiB, for `allocations`, `recycles` and `releases`.
    large_only = 16,
};
/// Returns the union of two sets.
constexpr TimelineSet operator|(TimelineSet one, TimelineSet other) noexcept {
    return static_cast<TimelineSet>(static_cast<std::uint8_t>(one) |
                                    static_cast<std::uint8_t>(other));
}
/// Returns whether `set` contains an event of `part`.
constexpr bool contains(TimelineSet set, TimelineSet part) noexcept {
    return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(part)) != 0;
}

/// The options of a caching allocator.
struct CachingOptions {
    /// The name shown in statistics and messages. At most 47 bytes of it are kept.
    std::string name = "caching";
    /// Which processors can access the memory.
    StorageKind storage = StorageKind::private_storage;
    /// The limit of the memory held, as a part of what the device recommends
    /// (`DeviceAbilities::recommended_bytes`), up to 2. 0 means no limit.
    double hard_limit = 0;
    /// The memory held, as a part of what the device recommends, from which on the allocator gives
    /// free memory back by age before it takes more. At most `hard_limit`, if that is set. 0 means
    /// no limit.
    double soft_limit = 0;
    /// The budget to which the allocator charges the memory that it holds; nullptr for none. Free
    /// memory goes back to the device before the budget refuses. It may end before the allocator.
    Budget* budget = nullptr;
    /// The limit for one request; a larger one fails at once. 0 means no limit.
    std::size_t max_allocation = 0;
    /// The size from which on a request gets a slab of its own that is never split, if slabs cannot
    /// grow.
    std::size_t oversize_bytes = std::size_t{64} << 20;
    /// The number of bytes by which a request may be smaller than a free slab of its own to reuse
    /// it. Values below 2 MiB count as 2 MiB, because slabs are multiples of that.
    std::size_t oversize_slack_bytes = std::size_t{32} << 20;
    /// Whether free memory is given back, or moved to other addresses, before the memory held
    /// exceeds the peak of the bytes in use by more than about a fifth. That costs calls to the
    /// device in the steady state. Otherwise free memory is kept until a request would fail.
    bool keep_near_peak = false;
    /// Whether slabs grow and shrink in place, if the device has virtual memory.
    bool expandable = true;
    /// Whether other processes can open memory of the allocator, and network cards can access it
    /// directly (RDMA) where the system supports that; see `CachingAllocator::allocate_shareable`.
    /// Requires `expandable` and a device with exportable memory. Memory of captures stays
    /// private.
    bool exportable = false;
    /// The optional events that the allocator adds to the timeline.
    TimelineSet timeline = TimelineSet::none;
};

}  // namespace tensorpool
