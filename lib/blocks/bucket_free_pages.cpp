// A page is free if all blocks that reach into it are. Pages behind the last block belong to that
// block, as in `drop_free_pages`. The count changes with each block that comes home, so it takes no
// division: pages hold whole blocks, or blocks hold whole pages, except with finer sizes.

#include "blocks/bucket_free_pages.hpp"

#include <algorithm>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::blocks {
namespace {

using pages::page_bytes;
using pages::Span;

/// Returns whether these blocks are home, or were never used.
bool are_free(const Span& span, unsigned first, unsigned last) noexcept {
    for (const unsigned end = std::min<unsigned>(last + 1, span.carved); first < end;) {
        const unsigned bits = std::min(end - first, 64 - first % 64);
        const std::uint64_t wanted = ~std::uint64_t{0} >> (64 - bits) << first % 64;
        if ((span.home_bits[first / 64] & wanted) != wanted) return false;
        first += bits;
    }
    return true;
}

bool is_free(const Span& span, unsigned index) noexcept {
    return index >= span.carved || is_home(span, index);
}

/// The offsets of a block of at least a page in its span.
struct Offsets {
    Offsets(const Span& span, std::size_t stride, unsigned index) noexcept
        : begin(index * stride), end(index + 1U == span.blocks ? span.bytes() : begin + stride) {}

    bool shares_first_page() const noexcept { return begin % page_bytes != 0; }
    bool shares_last_page() const noexcept { return end % page_bytes != 0; }
    unsigned pages_of_its_own() const noexcept {
        return static_cast<unsigned>(end / page_bytes -
                                     base::align_up(begin, page_bytes) / page_bytes);
    }

    std::size_t begin;
    std::size_t end;
};

/// Returns the pages that `drop_free_pages` would release.
unsigned trimmable_pages(const Span& span) noexcept {
    return span.free_pages - std::min(span.free_pages, span.untouched_pages);
}

// Serves all sizes of blocks and of the system's pages.
unsigned free_pages_among(const BucketTraits& bucket, const Span& span, unsigned first,
                          unsigned last) noexcept {
    const BucketLayout& layout = bucket.layout;
    const std::size_t page = platform::page_bytes();
    const auto address = reinterpret_cast<std::uintptr_t>(bucket.block_at(span, 0));
    const std::size_t lead = base::align_up(address, page) - address;
    const std::size_t from = std::max(first * layout.stride, lead);
    const std::size_t end = last + 1U == span.blocks ? span.bytes() : (last + 1U) * layout.stride;
    const auto index_at = [&](std::size_t offset) {
        const std::size_t index =
            layout.stride < page_bytes ? layout.index_at(offset) : offset / layout.stride;
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

}  // namespace

unsigned free_pages(const BucketTraits& bucket, const Span& span) noexcept {
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

unsigned free_pages_around(const BucketTraits& bucket, const Span& span, unsigned index) noexcept {
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

void set_free_memory(const BucketTraits& bucket, Span& span, unsigned free_pages,
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

void drop_free_pages(const BucketTraits& bucket, Span& span) noexcept {
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

}  // namespace tensorpool::blocks
