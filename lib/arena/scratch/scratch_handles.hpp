#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>

namespace tensorpool::arena {

/// A block of a scratch that a handle owns, and the position to which the handle's end returns.
struct ScratchHandle {
    const void* block = nullptr;
    std::uint64_t serial = 0;  // differs from that of any other handle of the scratch
    std::size_t used_before = 0;
    std::size_t used_after = 0;
    std::size_t chunk = 0;
    std::uint64_t scope = 0;
    std::uint64_t releases = 0;  // before the block was allocated
    std::thread::id thread;
};

}  // namespace tensorpool::arena
