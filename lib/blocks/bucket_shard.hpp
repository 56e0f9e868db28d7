#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>

#include "blocks/bucket_layout.hpp"
#include "blocks/magazine.hpp"
#include "pages/heap/page_heap.hpp"
#include "pages/record_arena.hpp"
#include "statistics/metrics/pool_metrics.hpp"

namespace tensorpool::blocks {

/// What a pool with checks records about each block: nothing, whether it is in use, or also how
/// many bytes were requested. With `hardened`, also: a new span contains zeros and ends with a page
/// that may not be accessed, and its blocks are taken in random order.
enum class States : std::uint8_t { none, uses, requests, hardened };

/// The objects that all buckets of one series of a pool share.
struct BucketSources {
    const char* pool_name;  // for messages
    pages::PageHeap& heap;
    pages::RecordArena& records;
    MagazineStore& magazines;
    statistics::PoolTotals& totals;
    States states;
    unsigned series = 0;     // of block sizes
    bool is_marked = false;  // blocks in use have marks (base/block_mark.hpp)
};

/// What is fixed about one bucket of one pool.
struct BucketTraits {
    BucketTraits(unsigned number, const BucketSources& shared) noexcept;

    /// How the pages of the system cut the blocks of a span.
    enum class Cut : std::uint8_t {
        whole_blocks,  // a page holds `blocks_in_page` blocks, whose bits lie in one word
        whole_pages,   // a block holds pages and shares at most its first and its last one
        others,
    };

    unsigned number;
    const BucketSources& sources;
    const BucketLayout& layout;
    std::size_t block_bytes;
    pages::PageKind kind;
    unsigned fullness_per_block;  // a fixed-point number
    Cut cut;
    unsigned blocks_in_page;

    /// The row of the statistics in which this bucket counts.
    unsigned row() const noexcept { return base::row_of(sources.series, number); }
    bool is_ours(pages::PageEntry entry) const noexcept {
        return entry.kind() == kind && entry.pool_number() == sources.heap.pool_number() &&
               (!sources.is_marked || entry.span()->marked_bucket() == number);
    }
    /// Whether spans have records beside them with a state or a mark for each block.
    bool has_states() const noexcept { return sources.states != States::none || sources.is_marked; }
    unsigned index_in(const pages::Span& span, const void* p) const noexcept;
    void* block_at(const pages::Span& span, unsigned index) const noexcept;
};

/// The spans of one bucket that one shard's threads cut into blocks. Thread-safe.
class BucketShard {
public:
    static constexpr unsigned fullness_lists = 8;

    BucketShard(const BucketTraits& traits, unsigned number) noexcept
        : traits_(traits), number_(number) {}
    BucketShard(const BucketShard&) = delete;
    BucketShard& operator=(const BucketShard&) = delete;

    /// Takes up to `max_count` blocks from spans, in the order of addresses, and adds spans as
    /// needed. Returns their number.
    unsigned take(void** blocks, unsigned max_count, pages::SlowPath& path) noexcept;
    /// Like `take`, but adds no span.
    unsigned take_from_listed(void** blocks, unsigned max_count) noexcept;
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
    pages::Span* listed_span() noexcept {
        if (lists_used_ == 0) return nullptr;
        return &with_room_[std::bit_width(lists_used_) - 1].front();
    }
    unsigned take_from(pages::Span& span, void** blocks, unsigned max_count) noexcept;
    pages::Span* add_span(pages::SlowPath& path) noexcept;
    pages::Span* new_span(pages::PageCount pages, pages::SlowPath& path) noexcept;
    unsigned fullness_of(const pages::Span& span) const noexcept;
    void list(pages::Span& span) noexcept;
    void unlist(pages::Span& span) noexcept;
    void drop_free_pages(pages::Span& span) noexcept;
    // bucket_free_pages.cpp
    /// Counts the pages of the system that hold free blocks only, of the span or around a block.
    unsigned free_pages(const pages::Span& span) const noexcept;
    unsigned free_pages_around(const pages::Span& span, unsigned index) const noexcept;
    unsigned free_pages_among(const pages::Span& span, unsigned first,
                              unsigned last) const noexcept;
    void set_free_memory(pages::Span& span, unsigned free_pages, unsigned untouched_pages) noexcept;
    unsigned take_home(pages::Span& span, void** blocks, unsigned max_count) noexcept;
    bool is_hardened() const noexcept { return traits_.sources.states == States::hardened; }
    void harden(pages::Span& span) noexcept;  // bucket_hardened.cpp
    unsigned take_at_random(pages::Span& span, void** blocks, unsigned max_count) noexcept;
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
    // Spans with room, by the share of their blocks that is not home. The fullest spans serve
    // first, so that the others become entirely free.
    pages::SpanList with_room_[fullness_lists];
    unsigned lists_used_ = 0;  // one bit for each list that is not empty
    pages::BlockStates* free_states_ = nullptr;
    std::uint64_t random_ = 0;  // the state of a generator; 0 before its first use
};

/// The pages at the end of a span of a hardened pool that may not be accessed.
pages::PageCount span_guard_pages() noexcept;
/// Makes the end of a hardened pool's span accessible again, before the span is freed. Returns
/// false if the system refuses: the span can then never be used again.
bool soften(pages::PageHeap& heap, const pages::Span& span) noexcept;

/// Returns whether the block with this index is home.
inline bool is_home(const pages::Span& span, unsigned index) noexcept {
    return (span.home_bits[index / 64] >> index % 64 & 1) != 0;
}

}  // namespace tensorpool::blocks
