#include "blocks/bucket_shard.hpp"

#include <new>

namespace tensorpool::blocks {
namespace {

using pages::BlockStates;

}  // namespace

// REQUIRES: mutex_ is held. Returns false if memory is short.
bool BucketShard::give_states(pages::Span& span) noexcept {
    BlockStates* states = free_states_;
    if (states != nullptr) {
        free_states_ = states->next_free;
    } else {
        const std::size_t width = traits_.sources.states == States::uses
                                      ? sizeof(BlockStates::State)
                                      : sizeof(BlockStates::WideState);
        // Fresh records are zero, which means that no block is in use.
        void* const memory = traits_.sources.records.allocate(
            sizeof(BlockStates) + traits_.layout.blocks * width, alignof(BlockStates));
        if (memory == nullptr) return false;
        states = new (memory) BlockStates;
    }
    states->first_block.store(static_cast<const char*>(traits_.block_at(span, 0)),
                              std::memory_order_relaxed);
    span.states.store(states, std::memory_order_release);
    return true;
}

// Keeps the states of a span that has left the page map for reuse. They are all 0, because none of
// its blocks was in use.
void BucketShard::keep_states(BlockStates* states) noexcept {
    if (states == nullptr) return;
    const std::lock_guard guard(mutex_);
    states->next_free = free_states_;
    free_states_ = states;
}

}  // namespace tensorpool::blocks
