#pragma once

#include <tensorpool/pool_options.hpp>

#include "base/lockable.hpp"
#include "base/never_destroyed.hpp"
#include "platform/threads/own_thread.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

/// A background thread that returns unused memory of pools with `RetentionPolicy::background` while
/// the program makes no calls to them. There is one trimmer per process, and it is never destroyed.
/// While a thread holds its lock, as around a fork, no pass over the pools begins. Thread-safe.
///
/// No allocation and no free starts the thread. The C library makes both while it holds locks of
/// its own, such as that of the list of threads, and starting a thread takes these locks.
class BackgroundTrimmer : public base::Lockable {
public:
    constexpr BackgroundTrimmer() noexcept = default;

    /// Counts a pool, or the environment, that wants the thread; `no_longer_wanted` uncounts it.
    /// Neither starts or ends the thread.
    void wanted(BackgroundTrim by) noexcept { wishes_[index_of(by)].fetch_add(1); }
    void no_longer_wanted(BackgroundTrim by) noexcept { wishes_[index_of(by)].fetch_sub(1); }
    /// Starts the thread if it is allowed, there is none, and it is wanted: with `on`, or with
    /// `automatic` once the process has created a thread. REQUIRES: the caller is in no allocation
    /// and in no free, and holds no lock that malloc takes.
    void start_if_wanted() noexcept;
    /// Allows or forbids the thread. If `is_allowed` is false, ends the thread, waits until it has
    /// ended, and prevents later starts. Otherwise does what `start_if_wanted` does. Must not be
    /// called on the trimmer thread itself.
    void allow(bool is_allowed) noexcept;

    /// Wakes the thread if it is asleep, so that it checks the pools again. Called at the end of
    /// slow paths. Costs one load while the thread is awake.
    void wake_if_asleep() noexcept {
        if (is_asleep()) [[unlikely]]
            wake();
    }
    bool is_asleep() const noexcept {
        // The compiler keeps the slow path's stores before this load. The processor is made to do
        // so by the trimmer's fence of all threads (`pause_after_look`).
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return sleeps_.load(std::memory_order_relaxed);
    }

    /// Makes one pass over all pools at time `now_ns` of the monotonic clock, and returns what is
    /// due to the system. Returns the nanoseconds until the next pass is due, or
    /// `platform::no_timeout` if nothing more can be returned before a thread calls a pool.
    std::uint64_t look(std::uint64_t now_ns) noexcept;

    /// Sets the handlers that take the locks of the trimmer and of the pool list around a fork.
    void watch_forks() noexcept;
    /// Called in a child that was made without these handlers, and has no other thread.
    void forget_thread() noexcept;

private:
    enum class State : std::uint8_t { none, starting, running, ending, refused };

    static constexpr std::size_t index_of(BackgroundTrim wish) noexcept {
        return static_cast<std::size_t>(wish);
    }
    bool wants(BackgroundTrim wish) const noexcept { return wishes_[index_of(wish)].load() != 0; }
    void start() noexcept;
    void run() noexcept;
    std::uint64_t pause_after_look() noexcept;
    void wake() noexcept;

    std::atomic<State> state_ = State::none;
    // How many pools want what. They order nothing.
    std::atomic<std::uint32_t> wishes_[3] = {};
    // Sequentially consistent, in one order with `state_`: if `start` misses that the thread was
    // just forbidden, the thread that forbids it sees the start.
    std::atomic<bool> is_allowed_ = true;
    // Sequentially consistent, in one order with `word_`: the thread sees that it must end, or is
    // woken on the word that it waits on.
    std::atomic<bool> ends_ = false;
    std::atomic<std::atomic<std::uint32_t>*> word_ = nullptr;  // the word that the thread waits on
    // Set before the last pass over the pools, with a fence of all threads in between.
    std::atomic<bool> sleeps_ = false;
    platform::OwnThread thread_;  // accessed only by the thread that changes `state_`
};

extern constinit base::NeverDestroyed<BackgroundTrimmer> the_background_trimmer;
inline BackgroundTrimmer& background_trimmer() noexcept {
    return the_background_trimmer.get();
}

/// Notes that the program has created a thread: starts the background trimmer if it is wanted. The
/// interposer calls it.
TENSORPOOL_API void program_created_thread() noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
