#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace tensorpool::command::replay {

/// Given once; any number of threads wait for it. Allocates nothing. All zeros is a fresh one.
class Signal {
public:
    /// What the giver wrote before, waiters see.
    void give() noexcept {
        // Pairs with the loads of `wait`.
        if (state_.exchange(given, std::memory_order_release) == slept_on) wake();
    }
    void wait() noexcept {
        // Some 2 us, what it costs to sleep: the other thread is mostly at it already.
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
            // Whoever finds `slept_on` there already sleeps too.
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
