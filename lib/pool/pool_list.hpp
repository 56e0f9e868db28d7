#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tensorpool::detail {
inline namespace abi_2 {

class Pool;

/// The part of each pool that the list uses, guarded by the list's lock.
struct ListedPool {
    Pool* next = nullptr;
    Pool* previous = nullptr;
    unsigned visits = 0;  // in progress: the pool stays until they end
};

/// Marks a visit of a pool by the calling thread for the lifetime of this object. Visits nest.
class OwnVisit {
public:
    explicit OwnVisit(const Pool& pool) noexcept;
    ~OwnVisit();
    OwnVisit(const OwnVisit&) = delete;
    OwnVisit& operator=(const OwnVisit&) = delete;

    /// Returns how many visits of this pool by the calling thread are in progress.
    static unsigned count(const Pool& pool) noexcept;

private:
    const Pool& pool_;
    const OwnVisit* const outer_;
};

/// The list of all pools of the process. `visit` does not hold the list's lock while it calls its
/// function, so callbacks of the pool may run in a visit. There is one list per process.
/// Thread-safe.
class PoolList {
public:
    constexpr PoolList() noexcept = default;

    /// Adds a pool to the list.
    void enter(Pool& pool) noexcept;
    /// Removes a pool from the list. Waits until no other thread visits this pool. Does not wait
    /// for visits by the calling thread: exit() in a callback destroys static pools and never
    /// returns to the visit.
    void leave(Pool& pool) noexcept;
    /// Calls `function` with each pool in turn.
    template <class Function>
    void visit(Function function) noexcept {
        for (Pool* pool = first_visit(); pool != nullptr; pool = next_visit(*pool)) {
            const OwnVisit own(*pool);
            function(*pool);
        }
    }

    // For fork handlers.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }
    /// Forgets the visits of other threads, which do not exist in the child of a fork.
    /// REQUIRES: the lock is held.
    void forget_visits() noexcept;

private:
    Pool* first_visit() noexcept;
    Pool* next_visit(Pool& pool) noexcept;
    Pool* begin_visit(Pool* pool) noexcept;
    bool try_leave(Pool& pool) noexcept;

    std::mutex mutex_;
    Pool* first_ = nullptr;  // under mutex_
    // Incremented when a visit has ended. Not part of the pool, which may be destroyed by then.
    std::atomic<std::uint32_t> ended_visits_ = 0;
};

PoolList& pool_list() noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
