#include "blocks/bucket_shard.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/alignment.hpp"
#include "base/text.hpp"
#include "events/misuse.hpp"
#include "platform/platform.hpp"

namespace tensorpool::blocks {
namespace {

using events::MisuseKind;
using events::stop_at_misuse;
using pages::PageCount;
using pages::PageEntry;
using pages::SlowPath;
using pages::Span;

// A bucket of at least this capacity has shown that it grows, so it is likely to use whole huge
// pages.
constexpr std::size_t grown_bucket_bytes = std::size_t{512} << 10;
// The fractional bits of the fixed-point number `fullness_per_block`.
constexpr unsigned fullness_shift = 16;
constexpr const char* expected = "expected a block of this pool in use";

BucketTraits::Cut cut_of(std::size_t stride) noexcept {
    if (platform::page_bytes() != pages::page_bytes) return BucketTraits::Cut::others;
    if (stride >= pages::page_bytes) return BucketTraits::Cut::whole_pages;
    const bool is_in_one_word = pages::page_bytes % stride == 0 && pages::page_bytes / stride <= 64;
    return is_in_one_word ? BucketTraits::Cut::whole_blocks : BucketTraits::Cut::others;
}

}  // namespace

BucketTraits::BucketTraits(unsigned its_number, const BucketSources& shared) noexcept
    : number(its_number),
      sources(shared),
      layout(series_layouts[shared.series][number]),
      block_bytes(base::block_bytes(shared.series, number)),
      kind(shared.is_marked ? pages::PageKind::marked
                            : pages::kind_of_bucket(number, shared.series)),
      fullness_per_block((BucketShard::fullness_lists << fullness_shift) / (layout.blocks + 1)),
      cut(cut_of(layout.stride)),
      blocks_in_page(static_cast<unsigned>(pages::page_bytes / layout.stride)) {}

unsigned BucketTraits::index_in(const Span& span, const void* p) const noexcept {
    const char* const begin = sources.heap.space().address_of(span.first_page);
    const auto offset = static_cast<std::uint32_t>(static_cast<const char*>(p) - begin);
    return offset / static_cast<std::uint32_t>(layout.stride);
}

void* BucketTraits::block_at(const Span& span, unsigned index) const noexcept {
    return sources.heap.space().address_of(span.first_page) + index * layout.stride;
}

unsigned BucketShard::take(void** blocks, unsigned max_count, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned count = 0;
    while (count < max_count) {
        Span* span = listed_span();
        if (span == nullptr) span = add_span(path);
        if (span == nullptr) break;
        count += take_from(*span, blocks + count, max_count - count);
    }
    add_out(count);
    return count;
}

unsigned BucketShard::take_from_listed(void** blocks, unsigned max_count) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned count = 0;
    while (count < max_count) {
        Span* const span = listed_span();
        if (span == nullptr) break;
        count += take_from(*span, blocks + count, max_count - count);
    }
    add_out(count);
    return count;
}

unsigned BucketShard::take_from(Span& span, void** blocks, unsigned max_count) noexcept {
    unsigned count = is_hardened() ? take_at_random(span, blocks, max_count)
                                   : take_home(span, blocks, max_count);
    count += carve(span, blocks + count, max_count - count);
    // Which of the taken pages were untouched is not known. Most spans have only one kind.
    const unsigned left = span.free_pages == 0 ? 0 : free_pages(span);
    const unsigned taken = span.free_pages - left;
    set_free_memory(span, left,
                    span.untouched_pages - std::min<unsigned>(span.untouched_pages, taken));
    unlist(span);
    if (span.home != 0 || span.carved != span.blocks) list(span);
    return count;
}

unsigned BucketShard::bring_home(void* const* blocks, unsigned count,
                                 pages::SpanList& all_home) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned done = 0;
    for (; done != count; ++done) {
        if (is_of_another_shard(blocks[done])) break;
        Span& span = span_of(blocks[done]);
        const unsigned index = traits_.index_in(span, blocks[done]);
        if (is_home(span, index)) {
            stop_at_misuse({.kind = MisuseKind::double_free,
                            .pointer = blocks[done],
                            .size = traits_.block_bytes,
                            .owner = traits_.sources.pool_name},
                           "pool '%s': deallocate: block %p was freed twice; %s",
                           traits_.sources.pool_name, blocks[done], expected);
        }
        span.home_bits[index / 64] |= std::uint64_t{1} << index % 64;
        ++span.home;
        if (const unsigned freed = free_pages_around(span, index)) {
            set_free_memory(span, span.free_pages + freed, span.untouched_pages);
        }
        if (span.listed && span.fullness == fullness_of(span) && span.home != span.carved) {
            continue;
        }
        if (span.listed) unlist(span);
        if (span.home != span.carved) {
            list(span);
            continue;
        }
        add_capacity(-static_cast<std::ptrdiff_t>(span.bytes()));
        set_free_memory(span, 0, 0);
        all_home.push_back(span);
    }
    add_out(-static_cast<std::ptrdiff_t>(done));
    return done;
}

// The lock is released between spans, because the system call for each span is slow.
void BucketShard::drop_free_pages() noexcept {
    if (!platform::decommit_keeps_access()) return;
    for (pages::SpanList& list : with_room_) {
        std::unique_lock lock(mutex_);
        for (std::size_t left = list.size(); left != 0 && !list.empty(); --left) {
            list.splice(list.end(), list, list.begin());
            drop_free_pages(list.back());
            lock.unlock();
            lock.lock();
        }
    }
}

void BucketShard::drop_free_pages(Span& span) noexcept {
    std::size_t dropped = 0;
    const auto address = [&](unsigned index) {
        return index == span.blocks
                   ? reinterpret_cast<std::uintptr_t>(traits_.block_at(span, 0)) + span.bytes()
                   : reinterpret_cast<std::uintptr_t>(traits_.block_at(span, index));
    };
    const auto is_free = [&](unsigned index) {
        return index >= span.carved || is_home(span, index);
    };
    for (unsigned index = 0; index < span.blocks;) {
        unsigned end = index;
        while (end < span.blocks && is_free(end)) ++end;
        const std::uintptr_t from = base::align_up(address(index), platform::page_bytes());
        const std::uintptr_t to = base::align_down(address(end), platform::page_bytes());
        // If the system refuses, the pages stay, which is harmless.
        if (from < to && platform::decommit(reinterpret_cast<void*>(from), to - from)) {
            dropped += to - from;
        }
        index = end + 1;
    }
    set_free_memory(span, span.free_pages, static_cast<unsigned>(dropped / platform::page_bytes()));
}

Span* BucketShard::add_span(SlowPath& path) noexcept {
    const BucketLayout& layout = traits_.layout;
    Span* span = new_span(layout.pages, path);
    // Near a limit, a span that holds a single block may still fit.
    const auto min_pages =
        static_cast<PageCount>(base::ceil_divide(layout.stride, pages::page_bytes));
    if (span == nullptr && min_pages < layout.pages) span = new_span(min_pages, path);
    return span;
}

Span* BucketShard::new_span(PageCount pages, SlowPath& path) noexcept {
    const pages::PageRequest request{
        .pages = pages + (is_hardened() ? span_guard_pages() : 0),
        .kind = traits_.kind,
        .huge = capacity() >= grown_bucket_bytes &&
                traits_.sources.heap.options().huge_pages != HugePages::never};
    Span* const span = traits_.sources.heap.allocate(request, path);
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
    if (is_hardened()) harden(*span);
    list(*span);
    add_capacity(static_cast<std::ptrdiff_t>(span->bytes()));
    const unsigned whole_pages = free_pages(*span);
    set_free_memory(*span, whole_pages, span->is_untouched() ? whole_pages : 0);
    return span;
}

// The index of the list for this span, 0 to `fullness_lists` - 1, by the blocks that are not home.
unsigned BucketShard::fullness_of(const Span& span) const noexcept {
    return static_cast<unsigned>(span.carved - span.home) * traits_.fullness_per_block >>
           fullness_shift;
}

void BucketShard::list(Span& span) noexcept {
    span.fullness = static_cast<std::uint8_t>(fullness_of(span));
    with_room_[span.fullness].push_front(span);
    lists_used_ |= 1U << span.fullness;
    span.listed = true;
}

void BucketShard::unlist(Span& span) noexcept {
    pages::SpanList& list = with_room_[span.fullness];
    list.erase(pages::SpanList::s_iterator_to(span));
    if (list.empty()) lists_used_ &= ~(1U << span.fullness);
    span.listed = false;
}

unsigned BucketShard::take_home(Span& span, void** blocks, unsigned max_count) noexcept {
    unsigned count = 0;
    for (unsigned word = 0; word * 64 < span.carved && span.home != 0; ++word) {
        std::uint64_t& bits = span.home_bits[word];
        while (bits != 0 && count < max_count) {
            blocks[count++] =
                traits_.block_at(span, word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
            bits &= bits - 1;
            --span.home;
        }
        if (count == max_count) break;
    }
    return count;
}

unsigned BucketShard::carve(Span& span, void** blocks, unsigned max_count) noexcept {
    const unsigned count = std::min<unsigned>(max_count, span.blocks - span.carved);
    for (unsigned i = 0; i < count; ++i) blocks[i] = traits_.block_at(span, span.carved + i);
    span.carved = static_cast<std::uint16_t>(span.carved + count);
    return count;
}

// Reads only what is fixed while the block is not home.
bool BucketShard::is_of_another_shard(const void* block) const noexcept {
    const PageEntry entry = traits_.sources.heap.space().map().at(block);
    return traits_.is_ours(entry) && entry.span()->shard != number_;
}

// A sized free skips validation; the pointer is validated here at the latest.
Span& BucketShard::span_of(void* block) noexcept {
    const PageEntry entry = traits_.sources.heap.space().map().at(block);
    if (traits_.is_ours(entry)) {
        Span& span = *entry.span();
        const unsigned index = traits_.index_in(span, block);
        if (index < span.carved && traits_.block_at(span, index) == block) return span;
    }
    stop_at_misuse(
        {.kind = MisuseKind::foreign_free, .pointer = block, .owner = traits_.sources.pool_name},
        "pool '%s': deallocate: %p was freed as a block of bucket %s and is none; %s",
        traits_.sources.pool_name, block, base::BytesText(traits_.block_bytes).c_str(), expected);
}

// Buckets of several series and shards count in one row of the totals, each under its own lock.
void BucketShard::add_capacity(std::ptrdiff_t bytes) noexcept {
    const auto more = static_cast<std::uint64_t>(bytes);
    capacity_.store(capacity() + more, std::memory_order_relaxed);
    traits_.sources.totals.bucket_capacity_bytes[traits_.row()].fetch_add(
        more, std::memory_order_relaxed);
}

void BucketShard::add_out(std::ptrdiff_t blocks) noexcept {
    const auto more = static_cast<std::uint64_t>(blocks);
    out_.store(out_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    statistics::PoolTotals& totals = traits_.sources.totals;
    if (blocks > 0) totals.hold_in(traits_.row(), more * traits_.block_bytes);
    if (blocks < 0) totals.let_go_from(traits_.row(), (0 - more) * traits_.block_bytes);
}

}  // namespace tensorpool::blocks
