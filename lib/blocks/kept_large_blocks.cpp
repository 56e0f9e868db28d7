#include "blocks/kept_large_blocks.hpp"

#include "blocks/bucket_set.hpp"

namespace tensorpool::blocks {
namespace {

/// Locks a BiasedLock for the owner.
class OwnersLock {
public:
    explicit OwnersLock(BiasedLock& lock) noexcept : lock_(lock) { lock.lock(wait_for_take_back); }
    ~OwnersLock() { lock_.unlock(); }
    OwnersLock(const OwnersLock&) = delete;
    OwnersLock& operator=(const OwnersLock&) = delete;

private:
    BiasedLock& lock_;
};

}  // namespace

pages::Span* KeptLargeBlocks::take(pages::PageCount pages, pages::LargeBlocks& large) noexcept {
    const OwnersLock guard(lock);
    pages::Span* const span = magazine_.take(pages);
    if (span == nullptr) return nullptr;
    count();
    large.end_wait(*span);
    return span;
}

bool KeptLargeBlocks::keep(pages::Span& span, pages::LargeBlocks& large) noexcept {
    const OwnersLock guard(lock);
    if (!large.may_wait(span) || !make_room(span)) return false;
    large.begin_wait(span);
    magazine_.put(span);
    count();
    return true;
}

// A thread keeps the room that it once reserved until its blocks are taken back. Blocks that are
// kept and taken in turn therefore change no word that threads share.
bool KeptLargeBlocks::make_room(const pages::Span& span) noexcept {
    if (magazine_.is_full() || span.bytes() > LargeMagazine::max_bytes) return false;
    const std::size_t needed = magazine_.bytes() + span.bytes();
    if (needed <= magazine_.room) [[likely]]
        return true;
    if (!can_take_back()) return false;
    if (!set_->shared().large_parking_limit.take(needed - magazine_.room)) return false;
    set_room(needed);
    return true;
}

std::size_t KeptLargeBlocks::give_back(pages::Changes& changes) noexcept {
    const OwnersLock guard(lock);
    return empty(changes);
}

std::size_t KeptLargeBlocks::give_back_unneeded(pages::Changes& changes) noexcept {
    const OwnersLock guard(lock);
    return empty_before(set_->heap().kept().period() - 1, changes);
}

std::size_t KeptLargeBlocks::empty(pages::Changes& changes) noexcept {
    const std::size_t bytes = empty_before(UINT32_MAX, changes);
    set_->shared().large_parking_limit.give_back(magazine_.room);
    set_room(0);
    return bytes;
}

// Blocks are counted one by one, so that a child forked in the middle counts what is still here.
std::size_t KeptLargeBlocks::empty_before(std::uint32_t period, pages::Changes& changes) noexcept {
    std::size_t bytes = 0;
    while (!magazine_.empty() && magazine_.oldest().period < period) {
        pages::Span& span = magazine_.take_oldest();
        const std::size_t gone = span.bytes();
        count();
        set_->totals().let_go(gone);
        set_->large_blocks().free_waiting(span, changes);
        bytes += gone;
    }
    return bytes;
}

}  // namespace tensorpool::blocks
