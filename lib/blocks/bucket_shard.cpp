#include "blocks/bucket_shard.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/alignment.hpp"
#include "base/text.hpp"
#include "blocks/bucket_free_pages.hpp"
#include "blocks/bucket_hardened.hpp"
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
constexpr const char* expected = "expected a block of this pool in use";

}  // namespace

unsigned BucketShard::take(void** blocks, unsigned max_count, SlowPath* path) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned count = 0;
    while (count < max_count) {
        Span* span = with_room_.fullest();
        if (span == nullptr && path != nullptr) span = add_span(*path);
        if (span == nullptr) break;
        count += take_from(*span, blocks + count, max_count - count);
    }
    add_out(count);
    return count;
}

unsigned BucketShard::take_from(Span& span, void** blocks, unsigned max_count) noexcept {
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

// The lock is released between spans, because the system call for each span is slow.
void BucketShard::drop_free_pages() noexcept {
    if (!platform::decommit_keeps_access()) return;
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
        .pages = pages + (traits_.is_hardened() ? span_guard_pages() : 0),
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
    if (traits_.is_hardened()) harden(traits_.sources.heap, *span);
    with_room_.place(*span);
    add_capacity(static_cast<std::ptrdiff_t>(span->bytes()));
    const unsigned whole_pages = free_pages(traits_, *span);
    set_free_memory(traits_, *span, whole_pages, span->is_untouched() ? whole_pages : 0);
    return span;
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
    const PageEntry entry = traits_.entry(block);
    return traits_.is_ours(entry) && entry.span()->shard != number_;
}

// A sized free skips validation; the pointer is validated here at the latest.
Span& BucketShard::span_of(void* block) noexcept {
    const PageEntry entry = traits_.entry(block);
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
