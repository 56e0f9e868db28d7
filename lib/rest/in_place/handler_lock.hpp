#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace tensorpool::stashing {

/// A lock that the thread which serves faults gets before others: a thread that takes it many times
/// in a row, for one piece after another, does not keep faults waiting.
class HandlerLock {
public:
    constexpr HandlerLock() noexcept = default;

    void lock() noexcept {
        // Relaxed: a thread that misses the change takes the lock once more at most.
        while (handler_waits_.load(std::memory_order_relaxed)) std::this_thread::yield();
        mutex_.lock();
    }
    void unlock() noexcept { mutex_.unlock(); }

    void lock_as_handler() noexcept {
        handler_waits_.store(true, std::memory_order_relaxed);
        mutex_.lock();
        handler_waits_.store(false, std::memory_order_relaxed);
    }
    /// For the child of a fork, which has no such thread. REQUIRES: the lock is held.
    void forget_handler() noexcept { handler_waits_.store(false, std::memory_order_relaxed); }

private:
    std::mutex mutex_;
    std::atomic<bool> handler_waits_ = false;
};

}  // namespace tensorpool::stashing
