#pragma once

/// @file
/// What an allocator of pinned memory can be told when it is made. All sizes are bytes.

#include <cstddef>
#include <string>

namespace tensorpool {

struct PinnedOptions {
    /// Shown in statistics and messages; at most 47 bytes of it are kept.
    std::string name = "pinned";
    /// The allocator never holds more; 0: no limit of its own. Pinned memory is taken from all
    /// programs of the machine.
    std::size_t max_bytes = 0;
    /// Slabs grow with what is held, from 2 MiB up to this, a multiple of 2 MiB; a request that is
    /// larger gets a slab of its own size.
    std::size_t largest_slab = std::size_t{1} << 30;
};

}  // namespace tensorpool
