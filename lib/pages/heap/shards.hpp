#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace tensorpool::pages {

/// A *shard* is what the threads on one group of processors share: a part of each page heap, of
/// each depot and of each bucket. Threads of different groups then rarely write the same words.
/// There is one shard for each 16 processors that the process may use, so one on most machines.
inline constexpr unsigned processors_per_shard = 16;
inline constexpr unsigned max_shards = 16;

/// Returns the number of shards for a process that may use so many processors.
unsigned shards_for(unsigned processors) noexcept;

/// How the threads of the process are divided among shards. Relaxed: the division orders nothing.
struct Sharding {
    std::atomic<unsigned> count = 0;  // 0: not determined yet
    /// Returns the shard of the calling thread, less than `max_shards`. It may change at any time,
    /// because a thread may move to another processor. Not called if `count` is 1.
    std::atomic<unsigned (*)() noexcept> current;
};
/// The division that is in effect. Tests replace it.
extern constinit Sharding sharding;

/// Returns the calling thread's shard after determining the division.
unsigned determine_shard() noexcept;
inline unsigned current_shard() noexcept {
    const unsigned count = sharding.count.load(std::memory_order_relaxed);
    if (count == 1) [[likely]]
        return 0;
    return count == 0 ? determine_shard() : sharding.current.load(std::memory_order_relaxed)();
}

/// One `T` for each shard. The first is part of this object; another is made when its shard first
/// needs it, and lives as long as this object. Thread-safe.
template <class T>
class PerShard {
public:
    template <class... Arguments>
    explicit PerShard(Arguments&&... arguments) : first_(std::forward<Arguments>(arguments)...) {}
    /// Ends the first. The owner ends the others before (`for_each_other`), if they must be.
    ~PerShard() = default;

    T& first() noexcept { return first_; }
    const T& first() const noexcept { return first_; }
    /// Returns the shard with this number, or nullptr if it was not made.
    T* find(unsigned number) noexcept {
        return number == 0 ? &first_ : others_[number - 1].load(std::memory_order_acquire);
    }
    /// Returns the calling thread's shard. If it was not made yet, `make(number)` makes it. If that
    /// returns nullptr, the first shard serves the thread. If another thread makes the shard at the
    /// same time, `discard` gets the superfluous one. REQUIRES: if shards have locks, the caller
    /// holds none of them.
    template <class Make, class Discard>
    T& own(Make make, Discard discard) noexcept {
        const unsigned number = current_shard();
        T* const found = find(number);
        return found != nullptr ? *found : add(number, make, discard);
    }
    /// Returns whether a second shard was made or is being made.
    bool has_others() const noexcept { return end_.load(std::memory_order_acquire) != 1; }
    template <class Function>
    void for_each(Function function) noexcept {
        function(first_);
        for_each_other(first_, function);
    }
    template <class Function>
    void for_each(Function function) const noexcept {
        const_cast<PerShard*>(this)->for_each(
            [&](T& shard) { function(static_cast<const T&>(shard)); });
    }
    /// Calls `function` with each shard except `own`, beginning with the one after it, so that
    /// shards do not all turn to the first.
    template <class Function>
    void for_each_other(const T& own, Function function) noexcept {
        const unsigned end = end_.load(std::memory_order_acquire);
        if (end == 1) [[likely]]
            return;
        unsigned at = 0;
        while (find(at) != &own) ++at;
        for (unsigned passed = 1; passed != end; ++passed) {
            if (T* const other = find((at + passed) % end)) function(*other);
        }
    }

private:
    // Under the lock of the first shard, if shards have locks, so that a thread that holds all of
    // them, as for a fork, gets no new one.
    template <class Make, class Discard>
    T& add(unsigned number, Make make, Discard discard) noexcept {
        if constexpr (requires { first_.lock(); }) {
            const std::lock_guard guard(first_);
            T* const found = find(number);
            return found != nullptr ? *found : publish(number, make(number), discard);
        } else {
            return publish(number, make(number), discard);
        }
    }
    template <class Discard>
    T& publish(unsigned number, T* made, Discard discard) noexcept {
        if (made == nullptr) return first_;
        // First, so that a thread that meets the new shard also sees that there is a second one.
        for (unsigned end = end_.load(std::memory_order_relaxed); end <= number;) {
            if (end_.compare_exchange_weak(end, number + 1, std::memory_order_release)) break;
        }
        T* found = nullptr;
        // Release: other threads see the shard as it was made.
        if (others_[number - 1].compare_exchange_strong(found, made, std::memory_order_acq_rel)) {
            return *made;
        }
        discard(*made);
        return *found;
    }

    T first_;
    std::atomic<T*> others_[max_shards - 1] = {};
    std::atomic<unsigned> end_ = 1;  // no shard from this number on was made
};

}  // namespace tensorpool::pages
