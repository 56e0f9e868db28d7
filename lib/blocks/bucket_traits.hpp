#pragma once

#include <cstddef>
#include <cstdint>

#include "blocks/bucket_layout.hpp"
#include "blocks/magazine.hpp"
#include "pages/heap/page_heap.hpp"
#include "pages/record_arena.hpp"
#include "statistics/segment/pool_totals.hpp"

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
};

/// Returns whether the block with this index is home.
inline bool is_home(const pages::Span& span, unsigned index) noexcept {
    return (span.home_bits[index / 64] >> index % 64 & 1) != 0;
}

}  // namespace tensorpool::blocks
