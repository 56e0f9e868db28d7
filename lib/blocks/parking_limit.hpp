#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

namespace tensorpool::blocks {

/// Returns the number of processors. Reads it from a file of the system once. Threads that do so at
/// the same time find the same number, so relaxed accesses are enough.
inline unsigned processor_count() noexcept {
    static constinit std::atomic<unsigned> known = 0;
    unsigned count = known.load(std::memory_order_relaxed);
    if (count == 0) {
        count = std::max(1U, std::thread::hardware_concurrency());
        known.store(count, std::memory_order_relaxed);
    }
    return count;
}

/// The limit of the bytes that the magazines of all threads of one pool may hold: a number for each
/// processor plus a number for each thread. A thread takes room before it keeps a block, so the
/// free blocks that threads keep never exceed the limit. Thread-safe. All accesses are relaxed,
/// because the limit orders nothing.
class ParkingLimit {
public:
    ParkingLimit(std::size_t bytes_per_processor, std::size_t bytes_per_thread) noexcept
        : for_processors_(bytes_per_processor * processor_count()),
          for_each_thread_(bytes_per_thread) {}

    /// Takes room for `bytes` bytes. Returns false, and takes nothing, if less is left.
    bool take(std::size_t bytes) noexcept {
        if (taken() + bytes > max_bytes()) return false;
        const std::size_t before = taken_.fetch_add(bytes, std::memory_order_relaxed);
        if (before + bytes <= max_bytes()) return true;
        give_back(bytes);
        return false;
    }
    void give_back(std::size_t bytes) noexcept {
        taken_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    /// Sets the bytes that are taken. For the child of a fork, where the share of threads that do
    /// not exist is not known exactly.
    void begin_again(std::size_t taken) noexcept { taken_.store(taken, std::memory_order_relaxed); }

    void add_thread() noexcept { threads_.fetch_add(1, std::memory_order_relaxed); }
    void remove_thread() noexcept { threads_.fetch_sub(1, std::memory_order_relaxed); }

    std::size_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
    std::size_t max_bytes() const noexcept {
        return for_processors_ + threads_.load(std::memory_order_relaxed) * for_each_thread_;
    }

private:
    const std::size_t for_processors_;
    const std::size_t for_each_thread_;
    std::atomic<std::size_t> threads_ = 0;
    std::atomic<std::size_t> taken_ = 0;
};

}  // namespace tensorpool::blocks
