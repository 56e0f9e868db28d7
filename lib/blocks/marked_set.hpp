#pragma once

#include "blocks/bucket_set.hpp"

namespace tensorpool::blocks {

/// Returns the calling thread's cache of the marked set of the pool of `first`; makes both if
/// needed. Returns nullptr where `ThreadRegistry::attach` does.
Cache* attach_marked(BucketSet& first) noexcept;

/// Called when the budget of the calling thread's scope changed: conceals the blocks that its
/// caches expose, and shows inline paths the other view of its caches.
void scope_changed() noexcept;

/// Returns whether a cache of the pool of `first` exposes blocks that are charged to `budget` or to
/// one below it.
bool exposes_within(BucketSet& first, const detail::BudgetNode& budget) noexcept;

/// From now on, inline frees recognize no block of the pool of `first`.
void hide_frees(BucketSet& first) noexcept;

/// Called before blocks of a marked set are handed out. If one does not lie at the low addresses,
/// which are used up, calls `hide_frees`.
inline void note_addresses(BucketSet& set, void* const* blocks, std::size_t count) noexcept {
    const auto lies_low = [&](const void* block) { return set.lies_low(block); };
    if (!std::all_of(blocks, blocks + count, lies_low)) [[unlikely]]
        hide_frees(set.first());
}

}  // namespace tensorpool::blocks
