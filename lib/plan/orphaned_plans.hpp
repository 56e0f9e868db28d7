#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "plan/served_plan.hpp"

namespace tensorpool::planned {

/// Plans whose arena was destroyed while callers of the global pool still held some of their
/// blocks. Each is released when its last block is freed. Thread-safe.
class OrphanedPlans {
public:
    /// Takes a list of retired plans, and releases those without held blocks.
    void add(std::unique_ptr<ServedPlan> plans) noexcept;
    /// Must be called after a block of a plan was freed through a pool: it may have been the last
    /// one of an orphaned plan.
    void look_after_free() noexcept {
        // Pairs with the fence in `add`: either this thread sees that there are orphaned plans, or
        // `add` sees that the block is free.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (count_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            release_unheld();
    }

    // For fork handlers.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    void release_unheld() noexcept;

    std::mutex mutex_;
    std::unique_ptr<ServedPlan> plans_;
    std::atomic<std::size_t> count_ = 0;  // changed under the mutex
};

OrphanedPlans& orphaned_plans() noexcept;

}  // namespace tensorpool::planned
