#pragma once

#include "base/block_sizes.hpp"
#include "pages/span.hpp"

namespace tensorpool::blocks {

inline constexpr std::size_t cache_line_bytes = 64;
/// From this size up, the distance between blocks is one cache line more than their size. Blocks
/// that all begin at multiples of a power of two would compete for the same few cache sets.
inline constexpr std::size_t spaced_from_bytes = 4096;

/// How a bucket's spans are cut into blocks.
struct BucketLayout {
    std::size_t stride = 0;        // from the beginning of one block to the next
    pages::PageCount pages = 0;    // of a span
    unsigned blocks = 0;           // in a span
    unsigned first_refill = 0;     // initial capacity of a magazine: 16 KiB of blocks, 1 to 64
    unsigned max_in_magazine = 0;  // 128 blocks, or 1 MiB of blocks if that is less
    std::uint64_t inverse = 0;     // 2^32 / stride, rounded up

    /// The index of the block that begins at this offset in a span. The result is meaningful only
    /// if a block begins there.
    constexpr std::uint64_t index_at(std::uint64_t offset) const noexcept {
        return offset * inverse >> 32;
    }
    /// The index of the block that begins at this offset in a span, or `blocks` if none does.
    constexpr std::uint64_t checked_index_at(std::uint64_t offset) const noexcept {
        if (offset >= blocks * stride) return blocks;
        const std::uint64_t index = index_at(offset);
        return index * stride == offset ? index : blocks;
    }
};

// The most blocks that a magazine holds. An exchange with the depot costs about 70 ns, independent
// of the number of blocks. With magazines of 64 blocks or 512 KiB, exchanges took a quarter of the
// time of allocating and freeing a thousand small blocks, and four fifths of it for large ones
// (perf/batch.cpp).
inline constexpr unsigned magazine_room = 128;

constexpr unsigned blocks_in(std::size_t bytes, std::size_t stride) noexcept {
    return static_cast<unsigned>(bytes / stride);
}

/// Computes a bucket's layout. Its spans are the smallest of at least 64 KiB that hold at least
/// eight blocks and waste at most 2 %. If 64 KiB would hold more than `Span::max_blocks` blocks,
/// the search begins with a smaller span.
consteval BucketLayout layout_of(unsigned series, unsigned bucket) {
    const std::size_t bytes = base::block_bytes(series, bucket);
    BucketLayout layout;
    layout.stride = bytes >= spaced_from_bytes ? bytes + cache_line_bytes : bytes;
    std::size_t span = std::size_t{64} << 10;
    if (blocks_in(span, layout.stride) > pages::Span::max_blocks) {
        span = base::align_down(pages::Span::max_blocks * layout.stride, pages::page_bytes);
    }
    const auto left_over = [&] { return span - blocks_in(span, layout.stride) * layout.stride; };
    while (blocks_in(span, layout.stride) < 8 || left_over() * 50 > span) span += pages::page_bytes;
    layout.pages = static_cast<pages::PageCount>(span / pages::page_bytes);
    layout.blocks = blocks_in(span, layout.stride);
    layout.inverse = base::ceil_divide(std::uint64_t{1} << 32, layout.stride);
    layout.first_refill = std::clamp(blocks_in(16 << 10, bytes), 1U, 64U);
    layout.max_in_magazine = std::min(blocks_in(1 << 20, bytes), magazine_room);
    return layout;
}

using SeriesLayouts = std::array<BucketLayout, detail::bucket_count>;

consteval std::array<SeriesLayouts, base::series_count> all_layouts() {
    std::array<SeriesLayouts, base::series_count> layouts = {};
    for (unsigned series = 0; series < base::series_count; ++series) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            layouts[series][bucket] = layout_of(series, bucket);
        }
    }
    return layouts;
}

inline constexpr auto series_layouts = all_layouts();
/// The layouts of the first series, the powers of two.
inline constexpr const SeriesLayouts& bucket_layouts = series_layouts[0];

/// Of the addresses of all blocks of a size these bits are 0: spans begin with a page.
constexpr std::size_t zero_bits_of(unsigned series, unsigned bucket) noexcept {
    const std::size_t stride = series_layouts[series][bucket].stride;
    return std::min(stride & (~stride + 1), pages::page_bytes) - 1;
}

inline constexpr unsigned kind_count = base::series_count * pages::kinds_of_series;
/// Indexed by the kind of a page, and extended by its sign: for kinds that are not buckets it
/// selects all bits of an address, which are never all 0.
inline constexpr auto zero_bits_of_kinds = [] {
    std::array<std::int16_t, kind_count> bits;
    bits.fill(-1);
    for (unsigned series = 0; series < base::series_count; ++series) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            bits[static_cast<unsigned>(pages::kind_of_bucket(bucket, series))] =
                static_cast<std::int16_t>(zero_bits_of(series, bucket));
        }
    }
    return bits;
}();

/// A cheap test before a free: returns false if no block of a bucket begins at `p`, whose page has
/// this entry. It returns true for some addresses inside blocks as well. `p` is not null.
inline bool may_begin_block(const void* p, pages::PageEntry entry) noexcept {
    const auto address = reinterpret_cast<std::intptr_t>(p);
    return (address & std::intptr_t{zero_bits_of_kinds[static_cast<unsigned>(entry.kind())]}) == 0;
}

namespace laws {
consteval bool layouts_keep_blocks_apart_and_aligned(unsigned series) {
    const std::size_t alignment = series == 0 ? cache_line_bytes : base::finer_alignment;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const BucketLayout& layout = series_layouts[series][bucket];
        if (layout.stride < base::block_bytes(series, bucket)) return false;
        if (layout.stride % alignment != 0) return false;
        if (layout.blocks * layout.stride > layout.pages * pages::page_bytes) return false;
        if (layout.blocks > pages::Span::max_blocks) return false;
        if (layout.first_refill > layout.max_in_magazine) return false;
        for (unsigned index = 0; index < layout.blocks; ++index) {
            if (layout.index_at(index * layout.stride) != index) return false;
        }
    }
    return true;
}
static_assert(layouts_keep_blocks_apart_and_aligned(0));
static_assert(layouts_keep_blocks_apart_and_aligned(1));
static_assert(layouts_keep_blocks_apart_and_aligned(2));
static_assert(layouts_keep_blocks_apart_and_aligned(3));
}  // namespace laws

}  // namespace tensorpool::blocks
