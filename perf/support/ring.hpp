#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>

namespace perf {

/// Hands batches from one thread to another, without allocation. `batches` are in flight at most.
template <class Batch, std::size_t batches = 8>
class Ring {
public:
    /// The next batch to fill; waits for room. For the sending thread.
    Batch& to_fill() noexcept {
        const std::size_t sent = sent_.load(std::memory_order_relaxed);
        wait_until([&] { return sent - taken_.load(std::memory_order_acquire) < batches; });
        return batches_[sent % batches];
    }
    /// Publishes it. Release: pairs with the acquire in `to_empty`.
    void fill_done() noexcept {
        sent_.store(sent_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    /// The next batch to empty; waits for one. For the receiving thread.
    Batch& to_empty() noexcept {
        const std::size_t taken = taken_.load(std::memory_order_relaxed);
        wait_until([&] { return sent_.load(std::memory_order_acquire) != taken; });
        return batches_[taken % batches];
    }
    /// Gives its place back. Release: pairs with the acquire in `to_fill`.
    void empty_done() noexcept {
        taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

private:
    /// Spins for some microseconds, then lets others run: there may be fewer cores than threads.
    template <class Condition>
    static void wait_until(Condition condition) noexcept {
        for (int spins = 0; !condition(); ++spins) {
            if (spins > 1000) std::this_thread::yield();
        }
    }

    alignas(64) std::atomic<std::size_t> sent_ = 0;
    alignas(64) std::atomic<std::size_t> taken_ = 0;
    alignas(64) std::array<Batch, batches> batches_ = {};
};

}  // namespace perf
