#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tensorpool::blocks {

/// Freed blocks that wait before they are reused, first in, first out. The queue lies in memory
/// mapped from the system, which only what is used of it takes. Thread-safe.
class Quarantine {
public:
    struct Block {
        void* begin;
        std::size_t bytes;
    };

    constexpr Quarantine() noexcept = default;
    Quarantine(const Quarantine&) = delete;
    Quarantine& operator=(const Quarantine&) = delete;
    ~Quarantine();

    /// Sets how many bytes of blocks it holds, which is 0 at first, and where it publishes how many
    /// it does. It never holds more than 65,536 blocks. To be called before the first block is
    /// added.
    void limit(std::size_t max_bytes, std::atomic<std::uint64_t>& published) noexcept {
        max_bytes_ = max_bytes;
        published_ = &published;
    }
    /// Adds a block. If the limit is then reached, takes up to `max_count` of the oldest blocks,
    /// until the queue is a sixteenth below its limit. Returns their number. A block that alone
    /// exceeds the limit, or for which the system has no memory, comes back at once. REQUIRES:
    /// `max_count` is not 0.
    unsigned exchange(Block added, Block* taken, unsigned max_count) noexcept;
    /// Takes up to `max_count` of the oldest blocks. Returns their number.
    unsigned take(Block* blocks, unsigned max_count) noexcept;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    static constexpr std::size_t max_blocks = std::size_t{1} << 16;
    bool make_queue() noexcept;
    bool holds_more_than(std::size_t bytes, std::uint64_t blocks) const noexcept {
        return bytes_ > bytes || end_ - begin_ > blocks;
    }
    Block pop() noexcept;
    // Relaxed: a metric that orders nothing. Only a thread with the lock writes it.
    void publish() noexcept { published_->store(bytes_, std::memory_order_relaxed); }

    std::size_t max_bytes_ = 0;
    std::atomic<std::uint64_t>* published_ = nullptr;
    std::mutex mutex_;
    // Guarded by mutex_. Positions count up; their remainder by `max_blocks` is the index.
    Block* queue_ = nullptr;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::blocks
