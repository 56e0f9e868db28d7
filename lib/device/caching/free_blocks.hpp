#pragma once

#include <cstddef>
#include <cstdint>

#include "device/caching/allocator_state.hpp"
#include "device/caching/scalars.hpp"

namespace tensorpool::device {

/// Finds free blocks in the sets of their streams. Fills the sets with blocks that streams parked
/// and with blocks that waited for other streams.
class FreeBlocks {
public:
    FreeBlocks(AllocatorState& state, Scalars& scalars) noexcept
        : state_(state), scalars_(scalars) {}

    /// Takes a block from the sets of the stream, after moving its parked blocks there. Returns
    /// nullptr if there is none. Throws std::bad_alloc.
    Block* take(StreamCache& cache, const Request& request);
    /// Frees blocks whose other streams have passed.
    void complete() noexcept;
    /// Frees the blocks behind the first `added` uses of this stream, which are known to be done.
    void complete_up_to(StreamCache& stream, std::uint64_t added) noexcept;
    /// Puts a list of parked blocks into the sets and returns their bytes.
    std::size_t put_back(StreamCache& cache, Block* parked) noexcept;
    /// Puts the parked blocks of all streams into the sets and returns their bytes.
    std::size_t flush_all() noexcept;
    /// The bytes in the sets.
    std::size_t bytes() const noexcept;

    /// Puts a block that all streams have passed into the sets.
    void reuse(Block& block) noexcept;

private:
    AllocatorState& state_;
    Scalars& scalars_;
};

}  // namespace tensorpool::device
