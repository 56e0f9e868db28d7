#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tensorpool::arena {

/// The growths and cancellations of an arena, for threads that wait for one.
class ArenaChanges {
public:
    /// Wakes the threads that wait. REQUIRES: the caller holds the arena's mutex.
    void announce() noexcept {
        count_.fetch_add(1, std::memory_order_relaxed);
        count_.notify_all();
    }
    /// Waits for a change. `lock` holds the arena's mutex, and is released.
    void wait(std::unique_lock<std::mutex>& lock) const noexcept {
        const std::uint32_t seen = count_.load(std::memory_order_relaxed);
        lock.unlock();
        count_.wait(seen, std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint32_t> count_ = 0;
};

}  // namespace tensorpool::arena
