#pragma once

#include <atomic>

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
    /// Until it looks free. Out of line: a call here would cost the fast path registers.
    void wait() const noexcept;

    std::atomic<bool> taken_ = false;
};

}  // namespace tensorpool::device
