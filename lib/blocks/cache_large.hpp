#pragma once

// The frequent operations of a thread's cache on large blocks, inline in the pool's functions. They
// do not access small blocks, so buckets that another thread has closed stay closed.

#include "blocks/cache.hpp"
#include "pages/large_blocks.hpp"

namespace tensorpool::blocks {

inline pages::Span* Cache::take_large_at_once(pages::PageCount pages,
                                              pages::LargeBlocks& large) noexcept {
    if (!lock_.try_lock()) [[unlikely]]
        return nullptr;
    pages::Span* const span = large_.take_last(pages);
    if (span == nullptr) [[unlikely]] {
        lock_.unlock();
        return nullptr;
    }
    count_large();
    lock_.unlock();
    large.end_wait(*span);
    return span;
}

inline bool Cache::keep_large_at_once(pages::Span& span, pages::LargeBlocks& large) noexcept {
    if (!large.may_wait_uncounted() || !lock_.try_lock()) [[unlikely]]
        return false;
    // The span may be marked after it was put in: no other thread looks at it before the lock is
    // released.
    const bool kept = large_.put_at_once(span);
    if (kept) [[likely]] {
        large.begin_wait_uncounted(span);
        count_large();
    }
    lock_.unlock();
    return kept;
}

inline void Cache::count_large() noexcept {
    counters->large.parked_bytes.store(large_.bytes(), std::memory_order_relaxed);
}

}  // namespace tensorpool::blocks
