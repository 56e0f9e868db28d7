#pragma once

#include "blocks/bucket_traits.hpp"

namespace tensorpool::blocks {

/// The spans of one bucket that have room, by the share of their blocks that is not home. The
/// fullest serve first, so that the others become entirely free. Not thread-safe.
class SpansWithRoom {
public:
    static constexpr unsigned list_count = 8;

    /// `blocks` is the number of blocks in a span.
    explicit SpansWithRoom(unsigned blocks) noexcept
        : fullness_per_block_((list_count << fullness_shift) / (blocks + 1)) {}

    /// Returns one of the fullest spans, or nullptr if there is none.
    pages::Span* fullest() noexcept {
        return used_ == 0 ? nullptr : &lists_[std::bit_width(used_) - 1].front();
    }
    /// Puts a span with room into the list where it belongs now, in front of others.
    void place(pages::Span& span) noexcept {
        const unsigned fullness = fullness_of(span);
        if (span.listed && span.fullness == fullness) return;
        remove(span);
        span.fullness = static_cast<std::uint8_t>(fullness);
        lists_[fullness].push_front(span);
        used_ |= 1U << fullness;
        span.listed = true;
    }
    /// Removes a span, if it is in a list.
    void remove(pages::Span& span) noexcept {
        if (!span.listed) return;
        pages::SpanList& list = lists_[span.fullness];
        list.erase(pages::SpanList::s_iterator_to(span));
        if (list.empty()) used_ &= ~(1U << span.fullness);
        span.listed = false;
    }
    pages::SpanList (&lists() noexcept)[list_count] { return lists_; }

private:
    static constexpr unsigned fullness_shift = 16;  // the fractional bits of a fixed-point number

    // The index of the list for this span, by the blocks that are not home.
    unsigned fullness_of(const pages::Span& span) const noexcept {
        return static_cast<unsigned>(span.carved - span.home) * fullness_per_block_ >>
               fullness_shift;
    }

    const unsigned fullness_per_block_;
    unsigned used_ = 0;  // one bit for each list that is not empty
    pages::SpanList lists_[list_count];
};

// Spans of hardened pools.

/// The pages at the end of a span that may not be accessed.
pages::PageCount span_guard_pages() noexcept;
/// Fills a new span with zeros, makes its end inaccessible, and all its blocks home.
void harden(pages::PageHeap& heap, pages::Span& span) noexcept;
/// Makes the end of a span accessible again, before the span is freed. Returns false if the system
/// refuses: the span can then never be used again.
bool soften(pages::PageHeap& heap, const pages::Span& span) noexcept;

/// Takes up to `max_count` blocks that are home in random order, and returns their number. `random`
/// is the state of a generator, 0 before its first use.
unsigned take_at_random(const BucketTraits& bucket, pages::Span& span, void** blocks,
                        unsigned max_count, std::uint64_t& random) noexcept;

/// The spans of one bucket that one shard's threads cut into blocks. Thread-safe.
class BucketShard {
public:
    BucketShard(const BucketTraits& traits, unsigned number) noexcept
        : traits_(traits), number_(number), with_room_(traits.layout.blocks) {}

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
    bool give_states(pages::Span& span) noexcept;
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
