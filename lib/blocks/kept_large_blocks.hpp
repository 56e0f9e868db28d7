#pragma once

#include <atomic>
#include <cstddef>

#include <tensorpool/detail/counters.hpp>

#include "blocks/biased_lock.hpp"
#include "blocks/large_magazine.hpp"
#include "pages/large_blocks.hpp"

namespace tensorpool::blocks {

class BucketSet;

/// The large blocks that one thread freed and keeps for one pool, which continues to count them as
/// held. `large` is the pool's object for large blocks. Its thread uses it, and so does a thread
/// that holds the registry's lock when the owner has ended, or when it takes the blocks back.
class KeptLargeBlocks {
public:
    /// Begins without blocks.
    void begin(BucketSet& set, detail::LargeCounters& counted) noexcept;

    /// Takes a kept block that fits a request for `pages` pages, and marks it as in use. Returns
    /// nullptr if there is none.
    pages::Span* take(pages::PageCount pages, pages::LargeBlocks& large) noexcept;
    /// Keeps a large block. Returns false, and leaves the block to the caller, if there is no room.
    bool keep(pages::Span& span, pages::LargeBlocks& large) noexcept;
    /// Does what `take` does if the block that was put in last fits. Returns nullptr if it does
    /// not, or if another thread is taking back blocks. Inline, without a call.
    pages::Span* take_at_once(pages::PageCount pages, pages::LargeBlocks& large) noexcept;
    /// Does what `keep` does if this thread's room suffices and retention sets no limit. Returns
    /// false otherwise, or if another thread is taking back blocks. Inline, without a call.
    bool keep_at_once(pages::Span& span, pages::LargeBlocks& large) noexcept;
    /// Gives all blocks to the page heap. Returns their bytes.
    std::size_t give_back(pages::Changes& changes) noexcept;
    /// Gives the blocks that were freed before the last whole period to the page heap. Returns
    /// their bytes.
    std::size_t give_back_unneeded(pages::Changes& changes) noexcept;

    /// The bytes that this thread may keep, its share of the pool's ParkingLimit. Relaxed: other
    /// threads read an estimate.
    std::size_t room_bytes() noexcept {
        return std::atomic_ref(magazine_.room).load(std::memory_order_relaxed);
    }

    /// Claimed by a thread that takes the blocks back.
    BiasedLock lock;
    /// Gives all blocks to the page heap. Returns their bytes. REQUIRES: the lock is held.
    std::size_t empty(pages::Changes& changes) noexcept;

private:
    bool make_room(const pages::Span& span) noexcept;
    // With the lock, without which other threads read it.
    void set_room(std::size_t bytes) noexcept {
        std::atomic_ref(magazine_.room).store(bytes, std::memory_order_relaxed);
    }
    void count() noexcept {
        counted_->parked_bytes.store(magazine_.bytes(), std::memory_order_relaxed);
    }
    std::size_t empty_before(std::uint32_t period, pages::Changes& changes) noexcept;

    BucketSet* set_ = nullptr;
    detail::LargeCounters* counted_ = nullptr;
    LargeMagazine magazine_;
};

inline pages::Span* KeptLargeBlocks::take_at_once(pages::PageCount pages,
                                                  pages::LargeBlocks& large) noexcept {
    if (!lock.try_lock()) [[unlikely]]
        return nullptr;
    pages::Span* const span = magazine_.take_last(pages);
    if (span == nullptr) [[unlikely]] {
        lock.unlock();
        return nullptr;
    }
    count();
    lock.unlock();
    large.end_wait(*span);
    return span;
}

inline bool KeptLargeBlocks::keep_at_once(pages::Span& span, pages::LargeBlocks& large) noexcept {
    if (!large.may_wait_uncounted() || !lock.try_lock()) [[unlikely]]
        return false;
    // The span may be marked after it was put in: no other thread looks at it before the lock is
    // released.
    const bool kept = magazine_.put_at_once(span);
    if (kept) [[likely]] {
        large.begin_wait_uncounted(span);
        count();
    }
    lock.unlock();
    return kept;
}

}  // namespace tensorpool::blocks
