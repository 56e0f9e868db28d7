#pragma once

#include <atomic>

namespace tensorpool::blocks {

/// A lock for what one thread, its owner, uses nearly always: the owner pays two plain stores and
/// a load. Another takes it by claiming it and then making every thread of the process pass a
/// fence (`platform::fence_all_threads`). After Dice, Moir and Scherer, "Quickly Reacquirable
/// Locks", 2003.
class BiasedLock {
public:
    /// The owner's. Where another has claimed it, `wait` is called until it has not.
    template <class Wait>
    void lock(Wait wait) noexcept {
        while (!try_lock()) wait();
    }
    /// The owner's. False where another has claimed it.
    bool try_lock() noexcept {
        owned_.store(true, std::memory_order_relaxed);
        // The fence is the compiler's: who claims makes the processor pass one.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!claimed_.load(std::memory_order_acquire)) [[likely]]
            return true;
        unlock();
        return false;
    }
    void unlock() noexcept { owned_.store(false, std::memory_order_release); }

    // REQUIRES, for these: one caller at a time, and not the owner.
    void claim() noexcept { claimed_.store(true, std::memory_order_relaxed); }
    /// After `claim` and a fence of all threads: whether it is the caller's now. The owner does not
    /// take it before `end_claim` then.
    bool is_claimed() const noexcept { return !owned_.load(std::memory_order_acquire); }
    void end_claim() noexcept { claimed_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> owned_ = false;
    std::atomic<bool> claimed_ = false;
};

}  // namespace tensorpool::blocks
