#pragma once

#include "blocks/bucket_traits.hpp"
#include "events/misuse.hpp"

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

/// Fills a new span with zeros, makes its end inaccessible, and all its blocks home.
void harden(pages::PageHeap& heap, pages::Span& span) noexcept;
/// Makes the end of a span accessible again, before the span is freed. Returns false if the system
/// refuses: the span can then never be used again.
bool soften(pages::PageHeap& heap, const pages::Span& span) noexcept;

/// Takes up to `max_count` blocks that are home in random order, and returns their number. `random`
/// is the state of a generator, 0 before its first use.
unsigned take_at_random(const BucketTraits& bucket, pages::Span& span, void** blocks,
                        unsigned max_count, std::uint64_t& random) noexcept;

// The bytes of the state of a block.
inline std::size_t width_of(States states) noexcept {
    if (states == States::none) return 0;
    if (states == States::uses) return sizeof(pages::BlockStates::State);
    const bool has_origin = states == States::hardened;
    return sizeof(pages::BlockStates::WideState) +
           (has_origin ? sizeof(pages::BlockStates::Origin) : 0);
}

inline constexpr const char* expected = "expected a block of this pool in use";

// A bucket of at least this capacity has shown that it grows, so it is likely to use whole huge
// pages.
inline constexpr std::size_t grown_bucket_bytes = std::size_t{512} << 10;

// A page of a span is free if all blocks that reach into it are. Pages behind the last block belong
// to that block, as in `drop_free_pages`. The count changes with each block that comes home, so it
// takes no division: pages hold whole blocks, or blocks hold whole pages, except with finer sizes.

/// Returns whether these blocks are home, or were never used.
inline bool are_free(const pages::Span& span, unsigned first, unsigned last) noexcept {
    for (const unsigned end = std::min<unsigned>(last + 1, span.carved); first < end;) {
        const unsigned bits = std::min(end - first, 64 - first % 64);
        const std::uint64_t wanted = ~std::uint64_t{0} >> (64 - bits) << first % 64;
        if ((span.home_bits[first / 64] & wanted) != wanted) return false;
        first += bits;
    }
    return true;
}

// Serves all sizes of blocks and of the system's pages.
inline unsigned free_pages_among(const BucketTraits& bucket, const pages::Span& span,
                                 unsigned first, unsigned last) noexcept {
    const BucketLayout& layout = bucket.layout;
    const std::size_t page = platform::page_bytes();
    const auto address = reinterpret_cast<std::uintptr_t>(bucket.block_at(span, 0));
    const std::size_t lead = base::align_up(address, page) - address;
    const std::size_t from = std::max(first * layout.stride, lead);
    const std::size_t end = last + 1U == span.blocks ? span.bytes() : (last + 1U) * layout.stride;
    const auto index_at = [&](std::size_t offset) {
        const std::size_t index =
            layout.stride < pages::page_bytes ? layout.index_at(offset) : offset / layout.stride;
        return static_cast<unsigned>(index);
    };
    unsigned count = 0;
    for (std::size_t begin = lead + base::align_down(from - lead, page);
         begin < end && begin + page <= span.bytes(); begin += page) {
        const unsigned in_page = std::min(index_at(begin), span.blocks - 1U);
        if (are_free(span, in_page, index_at(begin + page - 1))) ++count;
    }
    return count;
}

/// The offsets of a block of at least a page in its span.
struct Offsets {
    Offsets(const pages::Span& span, std::size_t stride, unsigned index) noexcept
        : begin(index * stride), end(index + 1U == span.blocks ? span.bytes() : begin + stride) {}

    bool shares_first_page() const noexcept { return begin % pages::page_bytes != 0; }
    bool shares_last_page() const noexcept { return end % pages::page_bytes != 0; }
    unsigned pages_of_its_own() const noexcept {
        return static_cast<unsigned>(end / pages::page_bytes -
                                     base::align_up(begin, pages::page_bytes) / pages::page_bytes);
    }

    std::size_t begin;
    std::size_t end;
};

inline bool is_free(const pages::Span& span, unsigned index) noexcept {
    return index >= span.carved || is_home(span, index);
}

/// Counts the pages of the system that hold free blocks only.
inline unsigned free_pages(const BucketTraits& bucket, const pages::Span& span) noexcept {
    unsigned count = 0;
    if (bucket.cut == BucketTraits::Cut::whole_blocks) {
        const unsigned step = bucket.blocks_in_page;
        for (unsigned first = 0; first < span.blocks; first += step) {
            if (are_free(span, first, first + step - 1)) ++count;
        }
        return count;
    }
    if (bucket.cut == BucketTraits::Cut::others) {
        return free_pages_among(bucket, span, 0, span.blocks - 1U);
    }
    for (unsigned index = 0; index < span.blocks; ++index) {
        if (!is_free(span, index)) continue;
        const Offsets at(span, bucket.layout.stride, index);
        count += at.pages_of_its_own();
        if (at.shares_last_page() && is_free(span, index + 1)) ++count;
    }
    return count;
}

/// Returns the pages that `drop_free_pages` would release.
inline unsigned trimmable_pages(const pages::Span& span) noexcept {
    return span.free_pages - std::min(span.free_pages, span.untouched_pages);
}

/// Records the number of such pages of a span, and how many of them are not in memory.
inline void set_free_memory(const BucketTraits& bucket, pages::Span& span, unsigned free_pages,
                            unsigned untouched_pages) noexcept {
    // A difference below 0 is added modulo 2^64.
    const auto add = [](statistics::Counter& sum, std::size_t now, std::size_t before) {
        if (now == before) return;
        sum.fetch_add((now - before) * platform::page_bytes(), std::memory_order_relaxed);
    };
    const unsigned untouched_before = span.untouched_pages;
    const unsigned trimmable_before = trimmable_pages(span);
    span.free_pages = static_cast<std::uint16_t>(free_pages);
    span.untouched_pages = static_cast<std::uint16_t>(untouched_pages);
    statistics::PoolTotals& totals = bucket.sources.totals;
    add(totals.untouched_span_bytes, untouched_pages, untouched_before);
    add(totals.trimmable_span_bytes, trimmable_pages(span), trimmable_before);
}

/// Releases the memory of such pages.
inline void drop_free_pages(const BucketTraits& bucket, pages::Span& span) noexcept {
    std::size_t dropped = 0;
    const auto address = [&](unsigned index) {
        return index == span.blocks
                   ? reinterpret_cast<std::uintptr_t>(bucket.block_at(span, 0)) + span.bytes()
                   : reinterpret_cast<std::uintptr_t>(bucket.block_at(span, index));
    };
    for (unsigned index = 0; index < span.blocks;) {
        unsigned end = index;
        while (end < span.blocks && is_free(span, end)) ++end;
        const std::uintptr_t from = base::align_up(address(index), platform::page_bytes());
        const std::uintptr_t to = base::align_down(address(end), platform::page_bytes());
        // If the system refuses, the pages stay, which is harmless.
        if (from < to && platform::decommit(reinterpret_cast<void*>(from), to - from)) {
            dropped += to - from;
        }
        index = end + 1;
    }
    set_free_memory(bucket, span, span.free_pages,
                    static_cast<unsigned>(dropped / platform::page_bytes()));
}

/// Counts those that a block which has just become free reaches into.
inline unsigned free_pages_around(const BucketTraits& bucket, const pages::Span& span,
                                  unsigned index) noexcept {
    if (bucket.cut == BucketTraits::Cut::whole_blocks) {
        // This is the path of most blocks that come home.
        const unsigned first = index & ~(bucket.blocks_in_page - 1);
        const std::uint64_t all = ~std::uint64_t{0} >> (64 - bucket.blocks_in_page);
        if ((span.home_bits[first / 64] >> first % 64 & all) == all) return 1;
        if (first + bucket.blocks_in_page <= span.carved) return 0;
        return are_free(span, first, span.carved - 1U) ? 1 : 0;
    }
    if (bucket.cut == BucketTraits::Cut::others) {
        return free_pages_among(bucket, span, index, index);
    }
    const Offsets at(span, bucket.layout.stride, index);
    unsigned count = at.pages_of_its_own();
    if (at.shares_first_page() && is_free(span, index - 1)) ++count;
    if (at.shares_last_page() && is_free(span, index + 1)) ++count;
    return count;
}

/// The spans of one bucket that one shard's threads cut into blocks. Thread-safe.
class BucketShard : public base::Lockable {
public:
    BucketShard(const BucketTraits& traits, unsigned number) noexcept
        : traits_(traits), number_(number), with_room_(traits.layout.blocks) {}

    /// Takes up to `max_count` blocks from spans, in the order of addresses, and adds spans as
    /// needed, unless `path` is null. Returns their number.
    unsigned take(void** blocks, unsigned max_count, pages::SlowPath* path) noexcept {
        const std::lock_guard guard(mutex_);
        unsigned count = 0;
        while (count < max_count) {
            pages::Span* span = with_room_.fullest();
            if (span == nullptr && path != nullptr) span = add_span(*path);
            if (span == nullptr) break;
            count += take_from(*span, blocks + count, max_count - count);
        }
        add_out(count);
        return count;
    }
    /// Returns blocks to their spans until one comes that belongs to another shard. Returns their
    /// number. Spans whose blocks are all home are taken out and added to `all_home`.
    unsigned bring_home(void* const* blocks, unsigned count, pages::SpanList& all_home) noexcept {
        const std::lock_guard guard(mutex_);
        unsigned done = 0;
        for (; done != count; ++done) {
            if (is_of_another_shard(blocks[done])) break;
            pages::Span& span = span_of(blocks[done]);
            const unsigned index = traits_.index_in(span, blocks[done]);
            if (is_home(span, index)) {
                events::stop_at_misuse({.kind = events::MisuseKind::double_free,
                                        .pointer = blocks[done],
                                        .size = traits_.block_bytes,
                                        .owner = traits_.sources.pool_name},
                                       "pool '%s': deallocate: block %p was freed twice; %s",
                                       traits_.sources.pool_name, blocks[done], expected);
            }
            span.home_bits[index / 64] |= std::uint64_t{1} << index % 64;
            ++span.home;
            if (const unsigned freed = free_pages_around(traits_, span, index)) {
                set_free_memory(traits_, span, span.free_pages + freed, span.untouched_pages);
            }
            if (span.home != span.carved) {
                with_room_.place(span);
                continue;
            }
            with_room_.remove(span);
            add_capacity(-static_cast<std::ptrdiff_t>(span.bytes()));
            set_free_memory(traits_, span, 0, 0);
            all_home.push_back(span);
        }
        add_out(-static_cast<std::ptrdiff_t>(done));
        return done;
    }
    /// Keeps states for the next span. A null pointer is ignored. Keeps the states of a span that
    /// has left the page map for reuse. They are all 0, as are marks, because none of its blocks
    /// was in use.
    void keep_states(pages::BlockStates* states) noexcept {
        if (states == nullptr) return;
        const std::lock_guard guard(mutex_);
        states->next_free = free_states_;
        free_states_ = states;
    }
    /// Releases the memory of whole pages that contain only free blocks. The lock is released
    /// between spans, because the system call for each span is slow.
    void drop_free_pages() noexcept {
        for (pages::SpanList& list : with_room_.lists()) {
            std::unique_lock lock(mutex_);
            for (std::size_t left = list.size(); left != 0 && !list.empty(); --left) {
                list.splice(list.end(), list, list.begin());
                blocks::drop_free_pages(traits_, list.back());
                lock.unlock();
                lock.lock();
            }
        }
    }

    /// The bytes of all spans, and of the blocks that are not home.
    std::size_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
    std::size_t out_bytes() const noexcept {
        return out_.load(std::memory_order_relaxed) * traits_.block_bytes;
    }

private:
    // REQUIRES, for all that follow: the lock is held.
    unsigned take_from(pages::Span& span, void** blocks, unsigned max_count) noexcept {
        unsigned count = traits_.is_hardened()
                             ? take_at_random(traits_, span, blocks, max_count, random_)
                             : take_home(span, blocks, max_count);
        count += carve(span, blocks + count, max_count - count);
        // Which of the taken pages were untouched is not known. Most spans have only one kind.
        const unsigned left = span.free_pages == 0 ? 0 : free_pages(traits_, span);
        const unsigned taken = span.free_pages - left;
        set_free_memory(traits_, span, left,
                        span.untouched_pages - std::min<unsigned>(span.untouched_pages, taken));
        const bool has_room = span.home != 0 || span.carved != span.blocks;
        has_room ? with_room_.place(span) : with_room_.remove(span);
        return count;
    }
    pages::Span* add_span(pages::SlowPath& path) noexcept {
        const BucketLayout& layout = traits_.layout;
        pages::Span* span = new_span(layout.pages, path);
        // Near a limit, a span that holds a single block may still fit.
        const auto min_pages =
            static_cast<pages::PageCount>(base::ceil_divide(layout.stride, pages::page_bytes));
        if (span == nullptr && min_pages < layout.pages) span = new_span(min_pages, path);
        return span;
    }
    pages::Span* new_span(pages::PageCount pages, pages::SlowPath& path) noexcept {
        const pages::PageRequest request{
            .pages = pages + (traits_.is_hardened() ? pages::guard_pages() : 0),
            .kind = traits_.kind,
            .huge = capacity() >= grown_bucket_bytes &&
                    traits_.sources.heap.options().huge_pages != HugePages::never};
        pages::Span* const span = traits_.sources.heap.allocate(request, path);
        if (span == nullptr) return nullptr;
        span->blocks = static_cast<std::uint16_t>(std::min(
            traits_.layout.blocks, blocks_in(pages * pages::page_bytes, traits_.layout.stride)));
        span->shard = static_cast<std::uint8_t>(number_);
        if (traits_.sources.is_marked) span->set_marked_bucket(traits_.number);
        span->carved = 0;
        span->home = 0;
        std::fill(std::begin(span->home_bits), std::end(span->home_bits), 0);
        if (traits_.has_states() && !give_states(*span)) {
            traits_.sources.heap.free(*span, path);
            path.refusal = pages::no_records();
            return nullptr;
        }
        if (traits_.is_hardened()) harden(traits_.sources.heap, *span);
        with_room_.place(*span);
        add_capacity(static_cast<std::ptrdiff_t>(span->bytes()));
        const unsigned whole_pages = free_pages(traits_, *span);
        set_free_memory(traits_, *span, whole_pages, span->is_untouched() ? whole_pages : 0);
        return span;
    }
    unsigned take_home(pages::Span& span, void** blocks, unsigned max_count) noexcept {
        unsigned count = 0;
        for (unsigned word = 0; word * 64 < span.carved && span.home != 0; ++word) {
            std::uint64_t& bits = span.home_bits[word];
            while (bits != 0 && count < max_count) {
                blocks[count++] = traits_.block_at(
                    span, word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
                bits &= bits - 1;
                --span.home;
            }
            if (count == max_count) break;
        }
        return count;
    }
    unsigned carve(pages::Span& span, void** blocks, unsigned max_count) noexcept {
        const unsigned count = std::min<unsigned>(max_count, span.blocks - span.carved);
        for (unsigned i = 0; i < count; ++i) blocks[i] = traits_.block_at(span, span.carved + i);
        span.carved = static_cast<std::uint16_t>(span.carved + count);
        return count;
    }
    // Reads only what is fixed while the block is not home.
    bool is_of_another_shard(const void* block) const noexcept {
        const pages::PageEntry entry = traits_.entry(block);
        return traits_.is_ours(entry) && entry.span()->shard != number_;
    }
    // A sized free skips validation; the pointer is validated here at the latest.
    pages::Span& span_of(void* block) noexcept {
        const pages::PageEntry entry = traits_.entry(block);
        if (traits_.is_ours(entry)) {
            pages::Span& span = *entry.span();
            const unsigned index = traits_.index_in(span, block);
            if (index < span.carved && traits_.block_at(span, index) == block) return span;
        }
        events::stop_at_misuse(
            {.kind = events::MisuseKind::foreign_free,
             .pointer = block,
             .owner = traits_.sources.pool_name},
            "pool '%s': deallocate: %p was freed as a block of bucket %s and is none; %s",
            traits_.sources.pool_name, block, base::BytesText(traits_.block_bytes).c_str(),
            expected);
    }
    // REQUIRES: mutex_ is held. Returns false if memory is short.
    bool give_states(pages::Span& span) noexcept {
        pages::BlockStates* states = free_states_;
        if (states != nullptr) {
            free_states_ = states->next_free;
        } else {
            using Mark = pages::BlockStates::Mark;
            const unsigned blocks = traits_.layout.blocks;
            const std::size_t bytes = base::align_up(
                sizeof(pages::BlockStates) + blocks * width_of(traits_.sources.states),
                alignof(Mark));
            const std::size_t bytes_of_marks =
                traits_.sources.is_marked ? blocks * sizeof(Mark) : 0;
            // Fresh records are zero, which means that no block is in use.
            void* const memory = traits_.sources.records.allocate(bytes + bytes_of_marks,
                                                                  alignof(pages::BlockStates));
            if (memory == nullptr) return false;
            states = new (memory) pages::BlockStates;
            if (traits_.sources.is_marked) {
                auto* const marks = static_cast<std::byte*>(memory) + bytes;
                states->marks = reinterpret_cast<Mark*>(marks);
                std::uninitialized_value_construct_n(states->marks, blocks);
            }
        }
        states->first_block.store(static_cast<const char*>(traits_.block_at(span, 0)),
                                  std::memory_order_relaxed);
        span.states.store(states, std::memory_order_release);
        return true;
    }
    // Buckets of several series and shards count in one row of the totals, each under its own lock.
    void add_capacity(std::ptrdiff_t bytes) noexcept {
        const auto more = static_cast<std::uint64_t>(bytes);
        capacity_.store(capacity() + more, std::memory_order_relaxed);
        traits_.sources.totals.bucket_capacity_bytes[traits_.row()].fetch_add(
            more, std::memory_order_relaxed);
    }
    void add_out(std::ptrdiff_t blocks) noexcept {
        const auto more = static_cast<std::uint64_t>(blocks);
        out_.store(out_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
        statistics::PoolTotals& totals = traits_.sources.totals;
        if (blocks > 0) totals.hold_in(traits_.row(), more * traits_.block_bytes);
        if (blocks < 0) totals.let_go_from(traits_.row(), (0 - more) * traits_.block_bytes);
    }

    const BucketTraits& traits_;
    const unsigned number_;
    // Written under mutex_, read without it. Relaxed: they order nothing.
    std::atomic<std::size_t> capacity_ = 0;
    std::atomic<std::size_t> out_ = 0;  // blocks that are not home
    // Guarded by mutex_:
    SpansWithRoom with_room_;
    pages::BlockStates* free_states_ = nullptr;
    std::uint64_t random_ = 0;  // for `take_at_random`
};

}  // namespace tensorpool::blocks
