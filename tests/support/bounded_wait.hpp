#pragma once

#include <chrono>
#include <thread>

namespace tensorpool::testing {

/// After this time, what a test waits for is considered never to happen. No test that passes
/// depends on it.
inline constexpr std::chrono::seconds max_wait{60};

/// Yields until `is_reached` returns true, for at most `max_wait`. Returns whether it did.
template <class Condition>
bool yield_until(const Condition& is_reached) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point end{};
    for (unsigned turn = 0; !is_reached(); ++turn) {
        if (turn % 64 == 63) {
            const Clock::time_point now = Clock::now();
            if (end == Clock::time_point{}) end = now + max_wait;
            if (now >= end) return false;
        }
        std::this_thread::yield();
    }
    return true;
}

}  // namespace tensorpool::testing
