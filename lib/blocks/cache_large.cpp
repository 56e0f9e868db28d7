// Large blocks that a thread's cache keeps.

#include "blocks/cache_large.hpp"

#include <utility>

#include "blocks/bucket_set.hpp"
#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {

pages::Span* Cache::take_large(pages::PageCount pages, pages::LargeBlocks& large) noexcept {
    const SlowCall call(*this);
    pages::Span* const span = large_.take(pages);
    if (span == nullptr) return nullptr;
    count_large();
    large.end_wait(*span);
    return span;
}

bool Cache::keep_large(pages::Span& span, pages::LargeBlocks& large) noexcept {
    const SlowCall call(*this);
    if (!large.may_wait(span) || !make_large_room(span)) return false;
    large.begin_wait(span);
    large_.put(span);
    count_large();
    return true;
}

// A thread keeps the room that it once reserved until its blocks are taken back. Blocks that are
// kept and taken in turn therefore change no word that threads share.
bool Cache::make_large_room(const pages::Span& span) noexcept {
    if (large_.is_full() || span.bytes() > LargeMagazine::max_bytes) return false;
    const std::size_t needed = large_.bytes() + span.bytes();
    if (needed <= large_.room) [[likely]]
        return true;
    if (!thread_registry().can_take_back()) return false;
    if (!set_->large_parking_limit().take(needed - large_.room)) return false;
    large_.room = needed;
    may_park_large_bytes_.store(needed, std::memory_order_relaxed);
    return true;
}

std::size_t Cache::give_back_large(pages::Changes& changes) noexcept {
    const SlowCall call(*this);
    return empty_large(changes);
}

std::size_t Cache::give_back_unneeded_large(pages::Changes& changes) noexcept {
    const SlowCall call(*this);
    return empty_large_before(set_->heap().kept().period() - 1, changes);
}

std::size_t Cache::empty_large(pages::Changes& changes) noexcept {
    const std::size_t bytes = empty_large_before(UINT32_MAX, changes);
    set_->large_parking_limit().give_back(std::exchange(large_.room, 0));
    may_park_large_bytes_.store(0, std::memory_order_relaxed);
    return bytes;
}

// Blocks are counted one by one, so that a child forked in the middle counts what is still here.
std::size_t Cache::empty_large_before(std::uint32_t period, pages::Changes& changes) noexcept {
    std::size_t bytes = 0;
    while (!large_.empty() && large_.oldest().period < period) {
        pages::Span& span = large_.take_oldest();
        const std::size_t gone = span.bytes();
        count_large();
        set_->totals().let_go(gone);
        set_->large_blocks().free_waiting(span, changes);
        bytes += gone;
    }
    return bytes;
}

}  // namespace tensorpool::blocks
