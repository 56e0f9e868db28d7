#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tensorpool::detail {
inline namespace abi_2 {

class Pool;

/// What the list keeps in each pool, under its lock.
struct ListedPool {
    Pool* next = nullptr;
    unsigned visits = 0;  // under way: the pool stays until they end
};

/// A visit of a pool by the calling thread, while it lives. They nest.
class OwnVisit {
public:
    explicit OwnVisit(const Pool& pool) noexcept;
    ~OwnVisit();
    OwnVisit(const OwnVisit&) = delete;
    OwnVisit& operator=(const OwnVisit&) = delete;

    /// How many visits of this pool by the calling thread are under way.
    static unsigned count(const Pool& pool) noexcept;

private:
    const Pool& pool_;
    const OwnVisit* const outer_;
};

/// All pools of the process. A visit holds none of the list's locks while it calls its function, so
/// that a callback of the pool may run in it. Thread-safe; the only list is the process's.
class PoolList {
public:
    constexpr PoolList() noexcept = default;

    void enter(Pool& pool) noexcept;
    /// Returns when no visit of this pool by another thread is under way. Visits by the calling
    /// thread are not waited for: exit() in a callback ends static pools, and returns to no visit.
    void leave(Pool& pool) noexcept;
    /// Calls `function` with each pool in turn.
    template <class Function>
    void visit(Function function) noexcept {
        for (Pool* pool = first_visit(); pool != nullptr; pool = next_visit(*pool)) {
            const OwnVisit own(*pool);
            function(*pool);
        }
    }

    // Around a fork. The child has none of the visits of other threads, but those of its own.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }
    /// REQUIRES: the lock is held.
    void forget_visits() noexcept;

private:
    Pool* first_visit() noexcept;
    Pool* next_visit(Pool& pool) noexcept;
    Pool* begin_visit(Pool* pool) noexcept;
    bool try_leave(Pool& pool) noexcept;

    std::mutex mutex_;
    Pool* first_ = nullptr;  // under mutex_
    // Added to when a visit has ended. Not in the pool, which may be gone by then.
    std::atomic<std::uint32_t> ended_visits_ = 0;
};

PoolList& pool_list() noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
