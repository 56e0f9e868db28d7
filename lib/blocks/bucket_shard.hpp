#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "blocks/bucket_traits.hpp"
#include "blocks/spans_with_room.hpp"

namespace tensorpool::blocks {

/// The spans of one bucket that one shard's threads cut into blocks. Thread-safe.
class BucketShard {
public:
    BucketShard(const BucketTraits& traits, unsigned number) noexcept
        : traits_(traits), number_(number), with_room_(traits.layout.blocks) {}
    BucketShard(const BucketShard&) = delete;
    BucketShard& operator=(const BucketShard&) = delete;

    /// Takes up to `max_count` blocks from spans, in the order of addresses, and adds spans as
    /// needed, unless `path` is null. Returns their number.
    unsigned take(void** blocks, unsigned max_count, pages::SlowPath* path) noexcept;
    /// Returns blocks to their spans until one comes that belongs to another shard. Returns their
    /// number. Spans whose blocks are all home are taken out and added to `all_home`.
    unsigned bring_home(void* const* blocks, unsigned count, pages::SpanList& all_home) noexcept;
    /// Keeps states for the next span. A null pointer is ignored.
    void keep_states(pages::BlockStates* states) noexcept;
    /// Releases the memory of whole pages that contain only free blocks.
    void drop_free_pages() noexcept;

    /// The bytes of all spans, and of the blocks that are not home.
    std::size_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
    std::size_t out_bytes() const noexcept {
        return out_.load(std::memory_order_relaxed) * traits_.block_bytes;
    }

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    // REQUIRES, for all that follow: the lock is held.
    unsigned take_from(pages::Span& span, void** blocks, unsigned max_count) noexcept;
    pages::Span* add_span(pages::SlowPath& path) noexcept;
    pages::Span* new_span(pages::PageCount pages, pages::SlowPath& path) noexcept;
    unsigned take_home(pages::Span& span, void** blocks, unsigned max_count) noexcept;
    unsigned carve(pages::Span& span, void** blocks, unsigned max_count) noexcept;
    bool is_of_another_shard(const void* block) const noexcept;
    pages::Span& span_of(void* block) noexcept;
    bool give_states(pages::Span& span) noexcept;  // bucket_states.cpp
    void add_capacity(std::ptrdiff_t bytes) noexcept;
    void add_out(std::ptrdiff_t blocks) noexcept;

    const BucketTraits& traits_;
    const unsigned number_;
    // Written under mutex_, read without it. Relaxed: they order nothing.
    std::atomic<std::size_t> capacity_ = 0;
    std::atomic<std::size_t> out_ = 0;  // blocks that are not home
    std::mutex mutex_;
    // Guarded by mutex_:
    SpansWithRoom with_room_;
    pages::BlockStates* free_states_ = nullptr;
    std::uint64_t random_ = 0;  // for `take_at_random`
};

}  // namespace tensorpool::blocks
