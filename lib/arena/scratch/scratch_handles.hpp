#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <tensorpool/memory_source.hpp>

#include "arena/release_history.hpp"

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

/// The handles of a scratch that have not ended, the last one made on top.
class ScratchHandles {
public:
    /// Adds a handle whose block begins at `used_before`, and gives it a serial number.
    void push(const ScratchHandle& handle);
    ScratchHandle& last() noexcept { return handles_.back(); }
    ScratchHandle pop() noexcept;
    /// Forgets the handle that owns `block`, wherever it is.
    void forget(const HeldBlock& block) noexcept;
    /// Returns why the end of the handle that owns `block` is misuse in `scope`, with `used` bytes
    /// in use; nullptr if it is not.
    const char* misuse_of(const HeldBlock& block, std::uint64_t scope, std::size_t used,
                          const ReleaseHistory& history) const noexcept;

private:
    using Handles = std::vector<ScratchHandle>;
    Handles::const_reverse_iterator find(const HeldBlock& block) const noexcept;

    std::uint64_t last_serial_ = 0;
    Handles handles_;
};

}  // namespace tensorpool::arena
