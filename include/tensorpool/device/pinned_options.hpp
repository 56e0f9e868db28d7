#pragma once

/// @file
/// The options of an allocator of pinned memory. All sizes are bytes.

#include <chrono>
#include <cstddef>
#include <string>

namespace tensorpool {

class Budget;

/// The options of an allocator of pinned memory.
struct PinnedOptions {
    /// The name shown in statistics and messages. At most 47 bytes of it are kept.
    std::string name = "pinned";
    /// The limit of the memory that the allocator holds; 0 means no limit. Pinned memory is
    /// unavailable to all other programs of the machine.
    std::size_t max_bytes = 0;
    /// The budget to which the allocator charges the memory that it holds; nullptr for none. Free
    /// slabs are released before the budget refuses, without waiting for copies. It may end before
    /// the allocator.
    Budget* budget = nullptr;
    /// The longest time that a request beyond `max_bytes` waits before it fails, while copies under
    /// way hold back freed blocks that are enough for it. It never waits for work of a capture. 0
    /// means that requests do not wait.
    std::chrono::nanoseconds pinned_wait = std::chrono::seconds(1);
    /// The size up to which slabs grow with the memory held, from 2 MiB on; a multiple of 2 MiB. A
    /// larger request gets a slab of its own size.
    std::size_t largest_slab = std::size_t{1} << 30;
};

}  // namespace tensorpool
