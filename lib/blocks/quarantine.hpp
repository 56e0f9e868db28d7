#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tensorpool::blocks {

/// Freed blocks that wait before they are reused, first in, first out. The queue lies in memory
/// mapped from the system, which only what is used of it takes. Thread-safe.
class Quarantine {
public:
    struct Block {
        void* begin = nullptr;
        std::size_t bytes = 0;
    };

    constexpr Quarantine() noexcept = default;
    Quarantine(const Quarantine&) = delete;
    Quarantine& operator=(const Quarantine&) = delete;
    ~Quarantine();

    /// Sets how many bytes of blocks it holds, which is 0 at first. It never holds more than
    /// 65,536 blocks. To be called before the first block is added.
    void limit(std::size_t max_bytes) noexcept { max_bytes_ = max_bytes; }
    /// Adds a block. Returns false, and does nothing, if the block alone exceeds the limit or if
    /// the system has no memory for the queue.
    bool add(Block block) noexcept;
    /// Takes up to `max_count` of the oldest blocks, as long as the queue exceeds its limit.
    /// Returns their number.
    unsigned take_excess(Block* blocks, unsigned max_count) noexcept;
    /// Takes up to `max_count` of the oldest blocks. Returns their number.
    unsigned take(Block* blocks, unsigned max_count) noexcept;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    static constexpr std::size_t max_blocks = std::size_t{1} << 16;
    Block pop() noexcept;
    bool exceeds() const noexcept { return bytes_ > max_bytes_ || end_ - begin_ == max_blocks; }

    std::size_t max_bytes_ = 0;
    std::mutex mutex_;
    // Guarded by mutex_. Positions count up; their remainder by `max_blocks` is the index.
    Block* queue_ = nullptr;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::blocks
