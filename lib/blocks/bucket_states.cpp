#include "blocks/bucket_shard.hpp"

#include <memory>
#include <new>

#include "base/alignment.hpp"

namespace tensorpool::blocks {
namespace {

using pages::BlockStates;

// The bytes of the state of a block.
std::size_t width_of(States states) noexcept {
    if (states == States::none) return 0;
    if (states == States::uses) return sizeof(BlockStates::State);
    const bool has_origin = states == States::hardened;
    return sizeof(BlockStates::WideState) + (has_origin ? sizeof(BlockStates::Origin) : 0);
}

}  // namespace

// REQUIRES: mutex_ is held. Returns false if memory is short.
bool BucketShard::give_states(pages::Span& span) noexcept {
    BlockStates* states = free_states_;
    if (states != nullptr) {
        free_states_ = states->next_free;
    } else {
        using Mark = BlockStates::Mark;
        const unsigned blocks = traits_.layout.blocks;
        const std::size_t bytes = base::align_up(
            sizeof(BlockStates) + blocks * width_of(traits_.sources.states), alignof(Mark));
        const std::size_t bytes_of_marks = traits_.sources.is_marked ? blocks * sizeof(Mark) : 0;
        // Fresh records are zero, which means that no block is in use.
        void* const memory =
            traits_.sources.records.allocate(bytes + bytes_of_marks, alignof(BlockStates));
        if (memory == nullptr) return false;
        states = new (memory) BlockStates;
        if (traits_.sources.is_marked) {
            auto* const marks = static_cast<std::byte*>(memory) + bytes;
            states->marks = reinterpret_cast<Mark*>(marks);
            std::uninitialized_value_construct_n(states->marks, blocks);
        }
    }
    states->first_block.store(static_cast<const char*>(traits_.block_at(span, 0)),
                              std::memory_order_relaxed);
    span.states.store(states, std::memory_order_release);
    return true;
}

// Keeps the states of a span that has left the page map for reuse. They are all 0, as are marks,
// because none of its blocks was in use.
void BucketShard::keep_states(BlockStates* states) noexcept {
    if (states == nullptr) return;
    const std::lock_guard guard(mutex_);
    states->next_free = free_states_;
    free_states_ = states;
}

}  // namespace tensorpool::blocks
