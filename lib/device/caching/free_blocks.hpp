#pragma once

#include <cstddef>
#include <cstdint>

#include "device/caching/allocator_state.hpp"
#include "device/caching/scalars.hpp"

namespace tensorpool::device {

/// Finds free blocks in the sets of their streams, and brings into the sets what may be found
/// there: what streams have parked, and what waited for other streams.
class FreeBlocks {
public:
    FreeBlocks(AllocatorState& state, Scalars& scalars) noexcept
        : state_(state), scalars_(scalars) {}

    /// A block from the sets of the stream, after all that it had parked went there; nullptr if
    /// there is none. Throws std::bad_alloc.
    Block* take(StreamCache& cache, const Request& request);
    /// Blocks that other streams used and have passed are free. Not while the caller captures: then
    /// no event may be queried.
    void complete(std::uint64_t capture) noexcept;
    /// Those for which the first `added` uses by this stream were waited for.
    void complete_up_to(StreamCache& stream, std::uint64_t added) noexcept;
    /// Puts a list of blocks that were parked into the sets; their bytes.
    std::size_t put_back(StreamCache& cache, Block* parked) noexcept;
    /// Puts all that streams have parked into the sets; its bytes.
    std::size_t flush_all() noexcept;
    /// In the sets.
    std::size_t bytes() const noexcept;

private:
    void reuse(Block& block) noexcept;

    AllocatorState& state_;
    Scalars& scalars_;
};

}  // namespace tensorpool::device
