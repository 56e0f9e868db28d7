#pragma once

#include "blocks/magazine.hpp"
#include "pages/heap/page_heap.hpp"

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
    /// How the pages of the system cut the blocks of a span.
    enum class Cut : std::uint8_t {
        whole_blocks,  // a page holds `blocks_in_page` blocks, whose bits lie in one word
        whole_pages,   // a block holds pages and shares at most its first and its last one
        others,
    };

    BucketTraits(unsigned its_number, const BucketSources& shared) noexcept
        : number(its_number),
          sources(shared),
          layout(series_layouts[shared.series][number]),
          block_bytes(base::block_bytes(shared.series, number)),
          kind(shared.is_marked ? pages::PageKind::marked
                                : pages::kind_of_bucket(number, shared.series)),
          cut(cut_of(layout.stride)),
          blocks_in_page(static_cast<unsigned>(pages::page_bytes / layout.stride)) {}

    unsigned number;
    const BucketSources& sources;
    const BucketLayout& layout;
    std::size_t block_bytes;
    pages::PageKind kind;
    Cut cut;
    unsigned blocks_in_page;

    /// The row of the statistics in which this bucket counts.
    unsigned row() const noexcept { return base::row_of(sources.series, number); }
    bool is_ours(pages::PageEntry entry) const noexcept {
        return entry.kind() == kind && entry.pool_number() == sources.heap.pool_number() &&
               (!sources.is_marked || entry.span()->marked_bucket() == number);
    }
    pages::PageEntry entry(const void* p) const noexcept {
        return sources.heap.space().map().at(p);
    }
    /// Whether spans have records beside them with a state or a mark for each block.
    bool has_states() const noexcept { return sources.states != States::none || sources.is_marked; }
    bool is_hardened() const noexcept { return sources.states == States::hardened; }
    unsigned index_in(const pages::Span& span, const void* p) const noexcept {
        const char* const begin = sources.heap.space().address_of(span.first_page);
        const auto offset = static_cast<std::uint32_t>(static_cast<const char*>(p) - begin);
        return offset / static_cast<std::uint32_t>(layout.stride);
    }
    void* block_at(const pages::Span& span, unsigned index) const noexcept {
        return sources.heap.space().address_of(span.first_page) + index * layout.stride;
    }

private:
    static Cut cut_of(std::size_t stride) noexcept {
        using pages::page_bytes;
        if (platform::page_bytes() != page_bytes) return Cut::others;
        if (stride >= page_bytes) return Cut::whole_pages;
        const bool is_in_one_word = page_bytes % stride == 0 && page_bytes / stride <= 64;
        return is_in_one_word ? Cut::whole_blocks : Cut::others;
    }
};

/// Returns whether the block with this index is home.
inline bool is_home(const pages::Span& span, unsigned index) noexcept {
    return (span.home_bits[index / 64] >> index % 64 & 1) != 0;
}

// What is recorded beside a span about each of its blocks: its mark, in a marked set, and its
// state, for pools with checks. The functions take no lock. `entry` is the entry of the block's
// page and belongs to the bucket.

/// Returns whether a block begins at `p`. The result is meaningful only for blocks in use.
inline bool begins_block(const BucketTraits& bucket, const void* p,
                         pages::PageEntry entry) noexcept {
    const char* const begin = static_cast<const char*>(bucket.block_at(*entry.span(), 0));
    const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(p) - begin);
    return bucket.layout.checked_index_at(offset) != bucket.layout.blocks;
}

/// Returns the offset of an address in the span that has these states.
inline std::uint64_t offset_in(const pages::BlockStates& states, const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p) -
           reinterpret_cast<std::uintptr_t>(states.first_block.load(std::memory_order_relaxed));
}

/// Returns the mark of the block that begins at `p`; nullptr if none begins there. REQUIRES: the
/// bucket's blocks have marks, and the span stays.
inline pages::BlockStates::Mark* mark_of(const BucketTraits& bucket, const void* p,
                                         pages::PageEntry entry) noexcept {
    // Acquire pairs with the release in `give_states`.
    const auto* const states = entry.span()->states.load(std::memory_order_acquire);
    if (states == nullptr) return nullptr;
    const std::uint64_t index = bucket.layout.checked_index_at(offset_in(*states, p));
    return index == bucket.layout.blocks ? nullptr : &states->marks[index];
}
/// Returns the mark of a block that the caller holds.
inline pages::BlockStates::Mark& mark_of(const BucketTraits& bucket, const void* block) noexcept {
    return *mark_of(bucket, block, bucket.entry(block));
}

/// Returns the requested bytes by a wide state, which is 1 plus the bytes of the block that were
/// not requested; 0 for a block that is not in use. 16 bits suffice for every bucket: the largest,
/// 64 KiB, serves only requests above 32 KiB.
inline std::size_t requested_bytes_of(const BucketTraits& bucket,
                                      std::uint16_t wide_state) noexcept {
    return wide_state == 0 ? 0 : 1 + bucket.block_bytes - wide_state;
}

/// Marks a block that came from a magazine or a span as in use. For a block in use already, sets
/// another number of requested bytes.
inline void begin_use(const BucketTraits& bucket, const void* block,
                      std::size_t requested_bytes) noexcept {
    const pages::PageEntry entry = bucket.entry(block);
    pages::BlockStates& states = *entry.span()->states.load(std::memory_order_relaxed);
    const std::uint64_t index = bucket.layout.index_at(offset_in(states, block));
    // Release: the states may have belonged to another span before. A thread that still reads them
    // for that span and sees this store also sees that the span has left the page map.
    if (bucket.sources.states == States::uses) {
        states.state(index).store(1, std::memory_order_release);
    } else {
        const auto wide = static_cast<std::uint16_t>(1 + bucket.block_bytes - requested_bytes);
        states.wide_state(index).store(wide, std::memory_order_release);
    }
}

/// Does what `begin_use` does, with `States::hardened`. Returns false, and does nothing, if `block`
/// is not the beginning of a free block of this bucket: a record was damaged.
[[nodiscard]] inline bool begin_first_use(const BucketTraits& bucket, const void* block,
                                          std::size_t requested_bytes,
                                          pages::BlockOrigin origin) noexcept {
    const pages::PageEntry entry = bucket.entry(block);
    if (!bucket.is_ours(entry)) return false;
    pages::BlockStates* const states = entry.span()->states.load(std::memory_order_relaxed);
    if (states == nullptr) return false;
    const BucketLayout& layout = bucket.layout;
    const std::uint64_t index = layout.checked_index_at(offset_in(*states, block));
    if (index == layout.blocks) return false;
    if (states->wide_state(index).load(std::memory_order_relaxed) != 0) return false;
    // Relaxed: the state, which is stored next, publishes it.
    states->origin(index, layout.blocks).store(origin, std::memory_order_relaxed);
    begin_use(bucket, block, requested_bytes);
    return true;
}

/// Returns how a block was allocated. REQUIRES: `States::hardened`, and the calling thread holds
/// the block.
inline pages::BlockStates::Origin& origin_of(const BucketTraits& bucket, const void* block,
                                             pages::PageEntry entry) noexcept {
    pages::BlockStates& states = *entry.span()->states.load(std::memory_order_relaxed);
    const std::uint64_t index = bucket.layout.index_at(offset_in(states, block));
    return states.origin(index, bucket.layout.blocks);
}

/// What was recorded about a block whose use has ended.
struct EndedUse {
    std::size_t requested = 0;
    pages::BlockOrigin origin;
};

/// Ends the use of the block at `p`. Returns true exactly once for each use. Returns false if no
/// block in use begins at `p`, or if more than `max_requested` bytes were requested for it; the
/// caller then reports the misuse. With `States::hardened`, `ended` receives how the block was
/// allocated, unless it is null.
inline bool end_use(const BucketTraits& bucket, const void* p, pages::PageEntry entry,
                    std::size_t max_requested, EndedUse* ended = nullptr) noexcept {
    const BucketLayout& layout = bucket.layout;
    const std::atomic<pages::BlockStates*>& of_span = entry.span()->states;
    pages::BlockStates* const states = of_span.load(std::memory_order_acquire);
    if (states == nullptr) return false;
    const char* const first = states->first_block.load(std::memory_order_relaxed);
    const std::uint64_t index = layout.checked_index_at(reinterpret_cast<std::uintptr_t>(p) -
                                                        reinterpret_cast<std::uintptr_t>(first));
    if (index == layout.blocks) return false;
    // If several threads free one block at the same time, the exchange lets only one of them find
    // it in use.
    if (bucket.sources.states == States::uses) {
        if (states->state(index).exchange(0, std::memory_order_acq_rel) == 0) return false;
    } else {
        pages::BlockStates::WideState& state = states->wide_state(index);
        const std::uint16_t seen = state.load(std::memory_order_relaxed);
        if (requested_bytes_of(bucket, seen) > max_requested) return false;
        const std::uint16_t last = state.exchange(0, std::memory_order_acq_rel);
        if (last == 0) return false;
        if (ended != nullptr) {
            // Relaxed: only the thread that ended the use reads it.
            const auto order = std::memory_order_relaxed;
            *ended = {requested_bytes_of(bucket, last),
                      states->origin(index, layout.blocks).load(order)};
        }
    }
    // A block in use keeps its span. If `p` was not in use, the span and its states may have been
    // reused while they were read. These comparisons detect that.
    return bucket.entry(p).word() == entry.word() &&
           of_span.load(std::memory_order_relaxed) == states &&
           states->first_block.load(std::memory_order_relaxed) == first;
}

}  // namespace tensorpool::blocks
