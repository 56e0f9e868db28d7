#include "statistics/scopes/counters_of_thread.hpp"

#include <numeric>

#include <tensorpool/detail/arena_words.hpp>

#include "base/block_sizes.hpp"
#include "base/never_destroyed.hpp"
#include "base/registry.hpp"

namespace tensorpool::statistics {

constinit thread_local CountersOfThread* own_counters_of_thread TENSORPOOL_INITIAL_EXEC = nullptr;

namespace {

// A thread reads its own counters, or needs only one value of another thread's.
using base::read;
using Blocks = std::array<std::uint64_t, detail::bucket_count>;

std::uint64_t sum_of(const Blocks& blocks) noexcept {
    return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0});
}

constinit base::NeverDestroyed<SlabList<ScopeFrame>> scope_frames;

void end_thread() noexcept;

/// The records of all threads. A record of an ended thread is reused by a new one.
class CountersOfAllThreads {
public:
    bool add_exit_handler() noexcept {
        const std::lock_guard guard(mutex_);
        if (exit_handler_ == platform::no_exit_handler) {
            exit_handler_ = platform::add_thread_exit_handler(end_thread);
        }
        return exit_handler_ != platform::no_exit_handler;
    }
    CountersOfThread* take() noexcept {
        // Without the fork handlers, the child of a fork might find a lock taken.
        if (!watch_forks() || !add_exit_handler()) return nullptr;
        const std::lock_guard guard(mutex_);
        if (free_ == nullptr) {
            CountersOfThread* const fresh = memory_.take();
            if (fresh == nullptr) return nullptr;
            fresh->number = all_ == nullptr ? 1 : all_->number + 1;
            fresh->next_of_all = std::exchange(all_, fresh);
            free_ = fresh;
        }
        // Without the exit handler, the record would be lost when the thread ends.
        if (!platform::call_at_thread_exit(exit_handler_)) return nullptr;
        CountersOfThread* const one = std::exchange(free_, free_->next_free);
        one->taken = true;
        return one;
    }
    // Keeps the smallest numbers sorted and in front, so that new threads get those that count
    // allocations from arenas on their own. The order of the others does not matter.
    void add_free(CountersOfThread& one) noexcept {
        one.taken = false;
        CountersOfThread** link = &free_;
        const std::size_t end = std::min(one.number, detail::ArenaWords::counting_threads + 1);
        while (*link != nullptr && (*link)->number < end) link = &(*link)->next_free;
        one.next_free = std::exchange(*link, &one);
    }
    void give_back(CountersOfThread& one) noexcept {
        const std::lock_guard guard(mutex_);
        add_free(one);
    }

    // Records of ended threads are locked as well: another thread may access one late, and the
    // child of a fork reuses it.
    void lock() noexcept {
        mutex_.lock();
        for_each([](CountersOfThread& one) { one.mutex.lock(); });
        scope_frames->lock();
    }
    void unlock() noexcept {
        scope_frames->unlock();
        for_each([](CountersOfThread& one) { one.mutex.unlock(); });
        mutex_.unlock();
    }
    // Called in the child of a fork, which has no other thread. StatisticsScopes of other threads
    // may still be destroyed, so their frames are not reused before that.
    void keep_only(const CountersOfThread* own) noexcept {
        const std::lock_guard guard(mutex_);
        for_each([&](CountersOfThread& one) {
            if (!one.taken || &one == own) return;
            ScopeFrame* frame = one.innermost.load(std::memory_order_relaxed);
            for (; frame != nullptr; frame = frame->outer) {
                frame->left_by_fork = true;
                // Modulo 2^64: adds -1.
                if (frame->record == nullptr) continue;
                frame->record->open.fetch_add(~std::uint64_t{0}, std::memory_order_relaxed);
            }
            one.leave();
            add_free(one);
        });
    }

private:
    template <class Function>
    void for_each(Function function) noexcept {
        for (CountersOfThread* one = all_; one != nullptr; one = one->next_of_all) function(*one);
    }

    std::mutex mutex_;
    // Guarded by mutex_:
    SlabList<CountersOfThread> memory_;
    CountersOfThread* all_ = nullptr;
    CountersOfThread* free_ = nullptr;
    platform::ExitHandler exit_handler_ = platform::no_exit_handler;
};

constinit base::NeverDestroyed<CountersOfAllThreads> counters_of_all_threads;

// POSIX calls exit handlers in at most four rounds. A record made after the last round would be
// lost.
constexpr unsigned last_round = 3;
constinit thread_local unsigned ended_rounds TENSORPOOL_INITIAL_EXEC = 0;

void end_thread() noexcept {
    ++ended_rounds;
    CountersOfThread* const own = std::exchange(own_counters_of_thread, nullptr);
    detail::thread_number = 0;
    forget_open_scopes();
    if (own == nullptr) return;
    {
        const std::lock_guard guard(own->mutex);
        own->leave();
    }
    counters_of_all_threads->give_back(*own);
}

// Registered while the library is loaded, when the system still has keys that need no memory in a
// thread. The key is set under locks, and a pool may serve malloc.
[[maybe_unused]] const bool has_exit_handler_from_the_start =
    counters_of_all_threads->add_exit_handler();

}  // namespace

void ThreadSums::add(const detail::ThreadCounters& counted, unsigned series) noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const std::uint64_t bytes = base::block_bytes(series, bucket);
        const unsigned row = base::row_of(series, bucket);
        const std::uint64_t allocated = read(counted.buckets[bucket].allocations);
        const std::uint64_t deallocated = read(counted.buckets[bucket].deallocations);
        allocations[row] += allocated;
        deallocations[row] += deallocated;
        small_allocated_bytes += allocated * bytes;
        small_deallocated_bytes += deallocated * bytes;
        requested_bytes += read(counted.buckets[bucket].requested_bytes);
    }
    requested_bytes += read(counted.large.requested_bytes);
    large_allocations += read(counted.large.allocations);
    large_allocated_bytes += read(counted.large.allocated_bytes);
    large_deallocations += read(counted.large.deallocations);
    large_deallocated_bytes += read(counted.large.deallocated_bytes);
}

std::uint64_t ThreadSums::allocation_count() const noexcept {
    return sum_of(allocations) + large_allocations;
}

std::uint64_t ThreadSums::deallocation_count() const noexcept {
    return sum_of(deallocations) + large_deallocations;
}

std::uint64_t net_bytes(const detail::ThreadCounters& counted, unsigned series) noexcept {
    std::uint64_t bytes =
        read(counted.large.allocated_bytes) - read(counted.large.deallocated_bytes);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const detail::BucketCounters& blocks = counted.buckets[bucket];
        bytes += (read(blocks.allocations) - read(blocks.deallocations)) *
                 base::block_bytes(series, bucket);
    }
    return bytes;
}

SlabList<ScopeFrame>& free_scope_frames() noexcept {
    return scope_frames.get();
}

CountersOfThread* CountersOfThread::own() noexcept {
    if (own_counters_of_thread == nullptr && ended_rounds < last_round) {
        own_counters_of_thread = counters_of_all_threads->take();
    }
    return own_counters_of_thread;
}

void begin(CountersLink& link, const detail::ThreadCounters& counters, unsigned series) noexcept {
    CountersOfThread* const own = CountersOfThread::own();
    if (own == nullptr) return;
    const std::lock_guard guard(own->mutex);
    own->add(link, counters, series);
}

void end(CountersLink& link) noexcept {
    // Acquire pairs with the store in `remove` and `leave`: after it the owner of the link may free
    // it.
    while (CountersOfThread* const owner = link.owner.load(std::memory_order_acquire)) {
        const std::lock_guard guard(owner->mutex);
        // The thread may have ended in between, and its record may belong to another thread by now.
        if (link.owner.load(std::memory_order_relaxed) == owner) owner->remove(link);
    }
}

void CountersOfThread::add(CountersLink& link, const detail::ThreadCounters& counters,
                           unsigned series) noexcept {
    ThreadSums before;
    before.add(counters, series);
    settled.subtract(before);
    link.counters = &counters;
    link.series = series;
    base::link_in_front(links, link);
    link.owner.store(this, std::memory_order_release);
}

void CountersOfThread::remove(CountersLink& link) noexcept {
    settled.add(*link.counters, link.series);
    base::unlink(links, link);
    link.owner.store(nullptr, std::memory_order_release);
}

ThreadSums CountersOfThread::sums() const noexcept {
    ThreadSums sums = settled;
    for (const CountersLink* link = links; link != nullptr; link = link->next) {
        sums.add(*link->counters, link->series);
    }
    return sums;
}

std::uint64_t CountersOfThread::net_bytes() const noexcept {
    std::uint64_t bytes = settled.net_bytes();
    for (const CountersLink* link = links; link != nullptr; link = link->next) {
        bytes += statistics::net_bytes(*link->counters, link->series);
    }
    return bytes;
}

void CountersOfThread::look() noexcept {
    ScopeFrame* const frame = innermost.load(std::memory_order_relaxed);
    if (frame != nullptr) frame->raise(net_bytes());
}

void CountersOfThread::leave() noexcept {
    while (links != nullptr) {
        CountersLink& link = *std::exchange(links, links->next);
        link.owner.store(nullptr, std::memory_order_release);
    }
    ScopeFrame* frame = innermost.exchange(nullptr, std::memory_order_relaxed);
    while (frame != nullptr) {
        ScopeFrame& one = *std::exchange(frame, frame->outer);
        one.owner.store(nullptr, std::memory_order_release);
    }
    while (free_frames != nullptr) {
        scope_frames->give_back(*std::exchange(free_frames, free_frames->next_free));
    }
}

void look_at_scopes_slow() noexcept {
    const std::lock_guard guard(own_counters_of_thread->mutex);
    own_counters_of_thread->look();
}

void count_beside_slow(const ThreadSums& counted) noexcept {
    const std::lock_guard guard(own_counters_of_thread->mutex);
    own_counters_of_thread->settled.add(counted);
    own_counters_of_thread->look();
}

void lock_counters_of_threads() noexcept {
    counters_of_all_threads->lock();
}

void unlock_counters_of_threads() noexcept {
    counters_of_all_threads->unlock();
}

void counters_of_threads_in_child() noexcept {
    counters_of_all_threads->keep_only(own_counters_of_thread);
}

}  // namespace tensorpool::statistics

namespace tensorpool::detail {
inline namespace abi_2 {

constinit thread_local std::size_t thread_number TENSORPOOL_INITIAL_EXEC = 0;

void count_allocation_slow(ArenaWords& words) noexcept {
    const statistics::CountersOfThread* const own = statistics::CountersOfThread::own();
    thread_number = own != nullptr ? own->number : 0;
    if (thread_number - 1 < ArenaWords::counting_threads) {
        add(words.allocations[thread_number], 1);
    } else {
        words.allocations[0].fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace abi_2
}  // namespace tensorpool::detail
