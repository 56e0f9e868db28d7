#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/block_mark.hpp"
#include "pages/block_origin.hpp"

namespace tensorpool::pages {

/// The states of the blocks of one bucket's span, in pools with checks, and the marks of marked
/// blocks. They lie out of band, in memory that lives as long as the pool and only ever holds
/// states of one bucket, so the state for any address may be read without a lock. The states follow
/// this head; 0 means not in use. In hardened pools, the origins of the blocks follow the states.
struct alignas(16) BlockStates {
    /// There is one state for each block, a wide one if it also holds the requested bytes.
    using State = std::atomic<std::uint8_t>;
    using WideState = std::atomic<std::uint16_t>;
    using Origin = std::atomic<BlockOrigin>;
    /// Null while the block is not in use, except for blocks that a thread holds ready for its
    /// scope (blocks/loaded_blocks.hpp). Relaxed: a mark belongs to the thread that holds the
    /// block, or that may take it out of a magazine; look-ups of any address may read it.
    using Mark = std::atomic<base::BlockMark*>;

    /// The address of the span's first block.
    std::atomic<const char*> first_block = nullptr;
    /// The next in the list of unused states. Guarded by the bucket's lock.
    BlockStates* next_free = nullptr;
    /// The marks of the blocks, in a span of marked blocks; set once.
    Mark* marks = nullptr;

    State& state(std::uint64_t index) noexcept { return reinterpret_cast<State*>(this + 1)[index]; }
    WideState& wide_state(std::uint64_t index) noexcept {
        return reinterpret_cast<WideState*>(this + 1)[index];
    }
    /// The origin of one of `blocks` blocks. It belongs to the thread that allocates the block or
    /// that ended its use.
    Origin& origin(std::uint64_t index, unsigned blocks) noexcept {
        return reinterpret_cast<Origin*>(&wide_state(blocks))[index];
    }
};

}  // namespace tensorpool::pages
