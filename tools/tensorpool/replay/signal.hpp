#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace tensorpool::command::replay {

/// A signal that is given once; any number of threads can wait for it. Does not allocate. All zero
/// bytes are a signal that is not given.
class Signal {
public:
    /// Gives the signal. What the thread wrote before is visible to the waiting threads.
    void give() noexcept {
        // Release: pairs with the acquire loads of `wait`.
        if (state_.exchange(given, std::memory_order_release) == slept_on) wake();
    }
    /// Waits until the signal is given.
    void wait() noexcept {
        // Spins for about 2 µs, the cost of sleeping, because the other thread is mostly near.
        for (int spin = 0; spin < 2000; ++spin) {
            if (state_.load(std::memory_order_acquire) == given) return;
        }
        sleep();
    }

private:
    enum State : std::uint32_t { none, given, slept_on };

    void sleep() noexcept {
        for (;;) {
            std::uint32_t seen = none;
            // If the state is `slept_on` already, this thread sleeps too.
            state_.compare_exchange_strong(seen, slept_on, std::memory_order_acquire);
            if (seen == given) return;
            syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, slept_on, nullptr, nullptr, 0);
        }
    }
    void wake() noexcept {
        syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    }

    std::atomic<std::uint32_t> state_ = none;
};
static_assert(sizeof(Signal) == 4);

}  // namespace tensorpool::command::replay
