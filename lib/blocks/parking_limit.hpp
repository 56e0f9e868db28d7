#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

namespace tensorpool::blocks {

/// What the magazines of one pool's threads may hold together: so much for each processor and each
/// thread. Room is taken before a thread keeps a block, so free blocks that threads keep are never
/// more. Thread-safe; relaxed, for it orders nothing.
class ParkingLimit {
public:
    ParkingLimit(std::size_t bytes_per_processor, std::size_t bytes_per_thread) noexcept
        : for_processors_(bytes_per_processor * std::max(1U, std::thread::hardware_concurrency())),
          for_each_thread_(bytes_per_thread) {}

    /// False, and nothing taken, when there is not so much left.
    bool take(std::size_t bytes) noexcept {
        if (taken() + bytes > most()) return false;
        const std::size_t before = taken_.fetch_add(bytes, std::memory_order_relaxed);
        if (before + bytes <= most()) return true;
        give_back(bytes);
        return false;
    }
    void give_back(std::size_t bytes) noexcept {
        taken_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    /// For a child of a fork, where what others took cannot be told for certain.
    void begin_again(std::size_t taken) noexcept { taken_.store(taken, std::memory_order_relaxed); }

    void add_thread() noexcept { threads_.fetch_add(1, std::memory_order_relaxed); }
    void remove_thread() noexcept { threads_.fetch_sub(1, std::memory_order_relaxed); }

    std::size_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
    std::size_t most() const noexcept {
        return for_processors_ + threads_.load(std::memory_order_relaxed) * for_each_thread_;
    }

private:
    const std::size_t for_processors_;
    const std::size_t for_each_thread_;
    std::atomic<std::size_t> threads_ = 0;
    std::atomic<std::size_t> taken_ = 0;
};

}  // namespace tensorpool::blocks
