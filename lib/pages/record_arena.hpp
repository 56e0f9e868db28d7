#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include <tensorpool/detail/counters.hpp>

namespace tensorpool::pages {

/// Memory for records that live as long as the pool. They are allocated one after another and freed
/// all at once. Thread-safe.
class RecordArena {
public:
    RecordArena() noexcept = default;
    RecordArena(const RecordArena&) = delete;
    RecordArena& operator=(const RecordArena&) = delete;
    ~RecordArena();

    /// Allocates zeroed memory, aligned to `alignment`, which is at most 64. Returns nullptr if the
    /// system has no memory.
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
    std::size_t bytes_held() const noexcept { return bytes_held_; }
    /// From now on, also adds the bytes held to this counter, which other objects may share.
    void count_in(detail::Counter& bytes) noexcept { counted_in_ = &bytes; }
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    struct Chunk {
        Chunk* next;
        std::size_t bytes;
    };
    bool add_chunk(std::size_t at_least) noexcept;

    std::mutex mutex_;
    Chunk* chunks_ = nullptr;
    std::size_t used_ = 0;                     // bytes of the first chunk, including its head
    std::atomic<std::size_t> bytes_held_ = 0;  // written under mutex_; readers need no order
    detail::Counter* counted_in_ = nullptr;
};

}  // namespace tensorpool::pages
