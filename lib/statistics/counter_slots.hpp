#pragma once

#include <atomic>
#include <mutex>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/statistics.hpp>

namespace tensorpool::statistics {

/// The counters of one thread for one pool. Cumulative: when its thread ends, the next one goes on
/// with it, so that nothing is folded in or counted twice.
struct alignas(64) CounterSlot {
    detail::ThreadCounters counters;
    CounterSlot* next = nullptr;
    bool taken = false;
};

/// One pool's slots. Slots are added, never removed. Thread-safe.
class CounterSlots {
public:
    CounterSlots() noexcept = default;
    CounterSlots(const CounterSlots&) = delete;
    CounterSlots& operator=(const CounterSlots&) = delete;
    ~CounterSlots();

    /// A slot that no thread counts in; nullptr when the system has no memory.
    CounterSlot* take() noexcept;
    void give_back(CounterSlot& slot) noexcept;

    /// The slot for threads without one. Its writer holds `shared_mutex`.
    detail::ThreadCounters& shared() noexcept { return shared_.counters; }
    std::mutex& shared_mutex() noexcept { return shared_mutex_; }

    /// Sums all slots into the figures of `statistics` that come from threads: frees first, so that
    /// what is in use never reads negative.
    void sum(PoolStatistics& statistics) const noexcept;
    /// Bytes in use, and nothing else.
    std::uint64_t in_use_bytes() const noexcept;
    std::uint64_t allocations() const noexcept;
    std::uint64_t deallocations() const noexcept;
    std::size_t bytes_held() const noexcept { return bytes_held_; }
    /// Threads that have a slot now.
    std::uint64_t taken_count() const noexcept { return taken_.load(std::memory_order_relaxed); }

    void lock() noexcept;
    void unlock() noexcept;

private:
    struct Chunk;
    bool add_chunk() noexcept;
    CounterSlot* first_free() const noexcept;
    template <class Function>
    void for_each(Function function) const noexcept;

    std::mutex mutex_;
    std::mutex shared_mutex_;
    CounterSlot shared_ = {};
    // Slots are pushed with release and walked with acquire: who finds one finds it zeroed.
    std::atomic<CounterSlot*> first_ = nullptr;
    Chunk* chunks_ = nullptr;
    std::atomic<std::size_t> bytes_held_ = 0;  // relaxed: a figure
    std::atomic<std::uint64_t> taken_ = 0;     // relaxed: a figure
};

}  // namespace tensorpool::statistics
