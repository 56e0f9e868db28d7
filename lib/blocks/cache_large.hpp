#pragma once

// What a thread's cache does with large blocks in nearly every call: inline where the pool calls.

#include "blocks/cache.hpp"
#include "pages/large_blocks.hpp"

namespace tensorpool::blocks {

/// A call of the thread itself that uses nothing here but large blocks: no other thread takes them
/// back while it lives. Small blocks stay closed where they are.
class Cache::LargeCall {
public:
    explicit LargeCall(Cache& cache) noexcept : cache_(cache) {
        cache.lock_.lock([] { wait_for_take_back(); });
    }
    ~LargeCall() { cache_.lock_.unlock(); }
    LargeCall(const LargeCall&) = delete;
    LargeCall& operator=(const LargeCall&) = delete;

private:
    [[gnu::cold]] static void wait_for_take_back() noexcept;

    Cache& cache_;
};

inline pages::Span* Cache::take_large(pages::PageCount pages, pages::LargeBlocks& large) noexcept {
    pages::Span* span;
    {
        const LargeCall call(*this);
        span = large_.take(pages);
        if (span == nullptr) return nullptr;
        count_large();
    }
    large.end_wait(*span);
    return span;
}

inline bool Cache::keep_large(pages::Span& span, pages::LargeBlocks& large) noexcept {
    const LargeCall call(*this);
    if (!large.may_wait(span)) [[unlikely]]
        return false;
    if (!large_.has_room_for(span) && !make_large_room(span)) [[unlikely]]
        return false;
    large.begin_wait(span);
    large_.put(span);
    count_large();
    return true;
}

inline void Cache::count_large() noexcept {
    counters->large.parked_bytes.store(large_.bytes(), std::memory_order_relaxed);
}

}  // namespace tensorpool::blocks
