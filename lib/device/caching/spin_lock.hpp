#pragma once

#include <atomic>
#include <thread>

namespace tensorpool::device {

/// For some ten instructions at a time. Taken by one exchange, given back by a plain store.
class SpinLock {
public:
    void lock() noexcept {
        // Acquire pairs with the release below: what the last holder wrote is seen.
        while (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] wait();
    }
    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

private:
    /// Gives the core away at once: its holder may have lost it.
    void wait() const noexcept {
        while (taken_.load(std::memory_order_relaxed)) std::this_thread::yield();
    }

    std::atomic<bool> taken_ = false;
};

}  // namespace tensorpool::device
