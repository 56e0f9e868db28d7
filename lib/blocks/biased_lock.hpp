#pragma once

#include <atomic>

namespace tensorpool::blocks {

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

}  // namespace tensorpool::blocks
