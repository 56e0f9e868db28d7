#pragma once

#include "pages/large_blocks.hpp"

namespace tensorpool::blocks {

/// The large blocks that one thread freed last and keeps for reuse: up to 24 blocks of at most
/// 8 MiB each. A hit costs no atomic operation, or two if retention limits what is kept. Not
/// thread-safe: a lock of KeptLargeBlocks guards it.
class LargeMagazine {
public:
    static constexpr unsigned max_blocks = 24;
    static constexpr std::size_t max_bytes = std::size_t{8} << 20;  // of one block
    static constexpr std::size_t bytes_per_processor = std::size_t{32} << 20;

    /// Takes the block that was put in last among those whose size is what a request for `pages`
    /// pages is rounded to. Returns nullptr if there is none.
    pages::Span* take(pages::PageCount pages) noexcept {
        if (pages::Span* const span = take_last(pages)) return span;
        for (unsigned at = count_; at-- != 0;) {
            if (!serves(at, pages)) continue;
            pages::Span* const span = spans_[at];
            bytes_ -= pages::bytes_of(pages_[at]);
            for (--count_; at != count_; ++at) move_down(at);
            return span;
        }
        return nullptr;
    }
    /// Takes the block that was put in last if its size is what a request for `pages` pages is
    /// rounded to. Returns nullptr otherwise.
    pages::Span* take_last(pages::PageCount pages) noexcept {
        const unsigned last = count_ - 1;
        if (count_ == 0) return nullptr;
        const pages::PageCount pages_of_last = pages_[last];
        if (pages_of_last - pages >= steps_[last]) return nullptr;
        count_ = last;
        bytes_ -= pages::bytes_of(pages_of_last);
        return spans_[last];
    }

    bool is_full() const noexcept { return count_ == max_blocks; }
    bool empty() const noexcept { return count_ == 0; }
    /// Puts a block in. REQUIRES: the magazine is not full and has room for the span's bytes, and
    /// the span's pages are a rounded size.
    void put(pages::Span& span) noexcept {
        pages_[count_] = span.pages;
        steps_[count_] = pages::large_step(span.pages);
        put_again(span, span.pages);
    }
    /// Puts a block in. Returns false, and does nothing, if there is no room or if the block's
    /// pages are not a rounded size.
    bool put_at_once(pages::Span& span) noexcept {
        const pages::PageCount pages = span.pages;
        if (is_full() || bytes_ + pages::bytes_of(pages) > room) return false;
        // Usually the last block at this position had the same size, and then the size is known to
        // be valid and its step is in place.
        if (pages_[count_] != pages) [[unlikely]] {
            if (!pages::is_rounded_large(pages) || pages::bytes_of(pages) > max_bytes) return false;
            pages_[count_] = pages;
            steps_[count_] = pages::large_step(pages);
        }
        put_again(span, pages);
        return true;
    }
    /// Takes the block that was put in first. REQUIRES: the magazine is not empty.
    pages::Span& take_oldest() noexcept {
        pages::Span& span = *spans_[0];
        bytes_ -= pages::bytes_of(pages_[0]);
        --count_;
        for (unsigned at = 0; at != count_; ++at) move_down(at);
        return span;
    }

    /// The block that was put in first. REQUIRES: the magazine is not empty.
    const pages::Span& oldest() const noexcept { return *spans_[0]; }

    std::size_t bytes() const noexcept { return bytes_; }
    /// Forgets all blocks without freeing them, for a thread that does not exist in the child of a
    /// fork.
    void forget() noexcept { *this = LargeMagazine(); }

    /// The bytes that the blocks may have. KeptLargeBlocks sets it.
    std::size_t room = 0;

private:
    bool serves(unsigned at, pages::PageCount pages) const noexcept {
        return pages_[at] - pages < steps_[at];
    }
    void put_again(pages::Span& span, pages::PageCount pages) noexcept {
        spans_[count_] = &span;
        ++count_;
        bytes_ += pages::bytes_of(pages);
    }
    void move_down(unsigned at) noexcept {
        spans_[at] = spans_[at + 1];
        pages_[at] = pages_[at + 1];
        steps_[at] = steps_[at + 1];
    }

    // Entries at and beyond `count_` describe the last block that lay there; 0 if there was none.
    std::array<pages::PageCount, max_blocks> pages_ = {};
    std::array<pages::PageCount, max_blocks> steps_ = {};  // distance to the next smaller size
    std::array<pages::Span*, max_blocks> spans_ = {};
    unsigned count_ = 0;
    std::size_t bytes_ = 0;
};

/// A lock for data that one thread, its owner, uses almost exclusively. The owner pays two plain
/// stores and a load. Another thread takes the lock by claiming it and then making every thread of
/// the process execute a fence (`platform::fence_all_threads`). After Dice, Moir and Scherer,
/// "Quickly Reacquirable Locks", 2003.
class BiasedLock {
public:
    /// Takes the lock. Called by the owner only. While another thread claims the lock, calls `wait`
    /// repeatedly.
    template <class Wait>
    void lock(Wait wait) noexcept {
        while (!try_lock()) wait();
    }
    /// Takes the lock unless another thread claims it, and returns whether it did. Called by the
    /// owner only.
    bool try_lock() noexcept {
        owned_.store(true, std::memory_order_relaxed);
        // A compiler fence is enough: the claiming thread makes this processor execute a fence.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!claimed_.load(std::memory_order_acquire)) [[likely]]
            return true;
        unlock();
        return false;
    }
    /// Releases the lock. Called by the owner only. Pairs with the acquire in `is_claimed`.
    void unlock() noexcept { owned_.store(false, std::memory_order_release); }

    // REQUIRES, for the following: one caller at a time, which is not the owner.
    /// Begins a claim. The claim is effective after a fence of all threads, if `is_claimed`.
    void claim() noexcept { claimed_.store(true, std::memory_order_relaxed); }
    /// Called after `claim` and a fence of all threads. Returns whether the caller has the lock. If
    /// it has, the owner cannot take the lock before `end_claim`.
    bool is_claimed() const noexcept { return !owned_.load(std::memory_order_acquire); }
    /// Ends a claim, whether it was effective or not. Pairs with the acquire in `try_lock`.
    void end_claim() noexcept { claimed_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> owned_ = false;
    std::atomic<bool> claimed_ = false;
};

class BucketSet;

/// The large blocks that one thread freed and keeps for one pool, which continues to count them as
/// held. `large` is the pool's object for large blocks. Its thread uses it, and so does a thread
/// that holds the registry's lock when the owner has ended, or when it takes the blocks back.
class KeptLargeBlocks {
public:
    /// Begins without blocks.
    void begin(BucketSet& set, detail::LargeCounters& counted) noexcept {
        set_ = &set;
        counted_ = &counted;
        magazine_.forget();
        lock.unlock();  // a thread that does not exist in the child of a fork may have held it
    }

    /// Takes a kept block that fits a request for `pages` pages, and marks it as in use. Returns
    /// nullptr if there is none.
    pages::Span* take(pages::PageCount pages, pages::LargeBlocks& large) noexcept;
    /// Keeps a large block. Returns false, and leaves the block to the caller, if there is no room.
    bool keep(pages::Span& span, pages::LargeBlocks& large) noexcept;
    /// Does what `take` does if the block that was put in last fits. Returns nullptr if it does
    /// not, or if another thread is taking back blocks. Inline, without a call.
    pages::Span* take_at_once(pages::PageCount pages, pages::LargeBlocks& large) noexcept {
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
    /// Does what `keep` does if this thread's room suffices and retention sets no limit. Returns
    /// false otherwise, or if another thread is taking back blocks. Inline, without a call.
    bool keep_at_once(pages::Span& span, pages::LargeBlocks& large) noexcept {
        if (!large.may_wait_uncounted() || !lock.try_lock()) [[unlikely]]
            return false;
        // The span may be marked after it was put in: no other thread looks at it before the lock
        // is released.
        const bool kept = magazine_.put_at_once(span);
        if (kept) [[likely]] {
            large.begin_wait_uncounted(span);
            count();
        }
        lock.unlock();
        return kept;
    }
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

}  // namespace tensorpool::blocks
