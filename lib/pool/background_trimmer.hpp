#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/never_destroyed.hpp"
#include "platform/process/own_thread.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

/// The thread that gives back what pools with `RetentionPolicy::background` do not need while no
/// call of theirs does. There is none before such a pool wants it. Thread-safe; the only trimmer is
/// the process's, never destroyed.
class BackgroundTrimmer {
public:
    constexpr BackgroundTrimmer() noexcept = default;

    /// Whether `start` might start the thread.
    bool may_start() const noexcept {
        // Relaxed: `start` looks again.
        return state_.load(std::memory_order_relaxed) == State::none &&
               is_allowed_.load(std::memory_order_relaxed);
    }
    /// Starts the thread if there is none and it is allowed. The C library may call malloc for it:
    /// no lock is held that a malloc takes.
    void start() noexcept;
    /// False: ends the thread, returns when it is gone, and none starts from now on. Not on the
    /// thread itself.
    void allow(bool is_allowed) noexcept;

    /// For the ends of slow paths: the thread looks at the pools again. One load while it is awake.
    void wake_if_asleep() noexcept {
        if (is_asleep()) [[unlikely]]
            wake();
    }
    bool is_asleep() const noexcept {
        // What the slow path stored comes first: the thread's fence of all threads does the rest.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return sleeps_.load(std::memory_order_relaxed);
    }

    /// One look at all pools, `now_ns` by the monotonic clock. Returns the nanoseconds after which
    /// the next one is due, or `platform::no_timeout` where nothing is left to give back before
    /// a thread calls a pool.
    std::uint64_t look(std::uint64_t now_ns) noexcept;

    /// Asks to be told of forks.
    void watch_forks() noexcept;
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

private:
    enum class State : std::uint8_t { none, starting, running, ending, refused };

    void run() noexcept;
    std::uint64_t pause_after_look() noexcept;
    void wake() noexcept;

    std::atomic<State> state_ = State::none;
    // In one total order with `state_`: a start that does not see that it is forbidden is seen by
    // the thread that forbids it.
    std::atomic<bool> is_allowed_ = true;
    // In one total order with `word_`: the thread sees the order to end, or is woken on its word.
    std::atomic<bool> ends_ = false;
    std::atomic<std::atomic<std::uint32_t>*> word_ = nullptr;  // that the thread waits on
    // Set before the thread looks for the last time; a fence of all threads lies between.
    std::atomic<bool> sleeps_ = false;
    platform::OwnThread thread_;  // of the thread that changes `state_`
    std::mutex look_mutex_;  // held while a pool gives back, so that a fork comes before or after
};

extern constinit base::NeverDestroyed<BackgroundTrimmer> the_background_trimmer;
inline BackgroundTrimmer& background_trimmer() noexcept {
    return the_background_trimmer.get();
}

}  // namespace abi_2
}  // namespace tensorpool::detail
