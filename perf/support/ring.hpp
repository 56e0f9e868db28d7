#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>

namespace perf {

/// Passes batches from one thread to another without allocation. At most `batches` are in flight.
template <class Batch, std::size_t batches = 8>
class Ring {
public:
    /// Waits for room and returns the next batch to fill. Only the sending thread may call it.
    Batch& to_fill() noexcept {
        const std::size_t sent = sent_.load(std::memory_order_relaxed);
        wait_until([&] { return sent - taken_.load(std::memory_order_acquire) < batches; });
        return batches_[sent % batches];
    }
    /// Publishes the filled batch. The release store pairs with the acquire load in `to_empty`.
    void fill_done() noexcept {
        sent_.store(sent_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    /// Waits for a batch and returns it. Only the receiving thread may call it.
    Batch& to_empty() noexcept {
        const std::size_t taken = taken_.load(std::memory_order_relaxed);
        wait_until([&] { return sent_.load(std::memory_order_acquire) != taken; });
        return batches_[taken % batches];
    }
    /// Frees the batch's position. The release store pairs with the acquire load in `to_fill`.
    void empty_done() noexcept {
        taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

private:
    /// Spins for some microseconds, then yields, because there may be fewer cores than threads.
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
