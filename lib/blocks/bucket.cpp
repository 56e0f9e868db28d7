#include "blocks/bucket_states.hpp"

#include <algorithm>
#include <bit>

#include "base/alignment.hpp"
#include "base/text.hpp"
#include "platform/fail.hpp"
#include "platform/platform.hpp"
#include "statistics/segment/failed_checks.hpp"

namespace tensorpool::blocks {
namespace {

using pages::Changes;
using pages::PageCount;
using pages::PageEntry;
using pages::SlowPath;
using pages::Span;
using statistics::CheckKind;
using statistics::count_failed_check;

// A bucket of at least this capacity has shown that it grows, so it is likely to use whole huge
// pages.
constexpr std::size_t grown_bucket_bytes = std::size_t{512} << 10;
// The fractional bits of the fixed-point number `fullness_per_block_`.
constexpr unsigned fullness_shift = 16;
constexpr const char* expected = "expected a block of this pool in use";

bool is_set(const Span& span, unsigned index) noexcept {
    return (span.home_bits[index / 64] >> index % 64 & 1) != 0;
}

}  // namespace

Bucket::Bucket(unsigned number, const BucketSources& sources) noexcept
    : number_(number),
      sources_(sources),
      layout_(series_layouts[sources.series][number]),
      block_bytes_(base::block_bytes(sources.series, number)),
      kind_(pages::kind_of_bucket(number, sources.series)),
      fullness_per_block_((fullness_lists << fullness_shift) / (layout_.blocks + 1)) {}

Bucket::~Bucket() {
    // The depot's memory is freed with the records, blocks and magazines with the pool.
    if (Depot* const depot = depot_.load(std::memory_order_relaxed)) depot->~Depot();
}

unsigned Bucket::take(void** blocks, unsigned max_count, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned count = 0;
    while (count < max_count) {
        Span* const span = span_with_room(path);
        if (span == nullptr) break;
        count += take_home(*span, blocks + count, max_count - count);
        count += carve(*span, blocks + count, max_count - count);
        unlist(*span);
        if (span->home != 0 || span->carved != span->blocks) list(*span);
    }
    std::reverse(blocks, blocks + count);
    add_out(count);
    return count;
}

std::size_t Bucket::bring_home(void* const* blocks, unsigned count, Changes& changes) noexcept {
    pages::SpanList all_home;
    {
        const std::lock_guard guard(mutex_);
        add_out(-static_cast<std::ptrdiff_t>(count));
        for (unsigned i = 0; i < count; ++i) {
            Span& span = span_of(blocks[i]);
            const unsigned index = index_in(span, blocks[i]);
            if (is_set(span, index)) {
                count_failed_check(CheckKind::misuse, sources_.pool_name);
                platform::fail("pool '%s': deallocate: block %p was freed twice; %s",
                               sources_.pool_name, blocks[i], expected);
            }
            span.home_bits[index / 64] |= std::uint64_t{1} << index % 64;
            ++span.home;
            if (span.listed && span.fullness == fullness_of(span) && span.home != span.carved) {
                continue;
            }
            if (span.listed) unlist(span);
            if (span.home != span.carved) {
                list(span);
                continue;
            }
            add_capacity(-static_cast<std::ptrdiff_t>(span.bytes()));
            all_home.push_back(span);
        }
    }
    std::size_t bytes = 0;
    while (!all_home.empty()) {
        Span& span = all_home.front();
        all_home.pop_front();
        bytes += span.bytes();
        pages::BlockStates* const states = span.states.exchange(nullptr);
        sources_.heap.free(span, changes);
        keep_states(states);
    }
    return bytes;
}

// The lock is released between spans, because the system call for each span is slow.
void Bucket::drop_free_pages() noexcept {
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

void Bucket::drop_free_pages(const Span& span) noexcept {
    const auto address = [&](unsigned index) {
        return index == span.blocks
                   ? reinterpret_cast<std::uintptr_t>(block_at(span, 0)) + span.bytes()
                   : reinterpret_cast<std::uintptr_t>(block_at(span, index));
    };
    const auto is_free = [&](unsigned index) {
        return index >= span.carved || is_set(span, index);
    };
    for (unsigned index = 0; index < span.blocks;) {
        unsigned end = index;
        while (end < span.blocks && is_free(end)) ++end;
        const std::uintptr_t from = base::align_up(address(index), platform::page_bytes());
        const std::uintptr_t to = base::align_down(address(end), platform::page_bytes());
        // If the system refuses, the pages stay, which is harmless.
        if (from < to) (void)platform::decommit(reinterpret_cast<void*>(from), to - from);
        index = end + 1;
    }
}

Bucket::Finding Bucket::find(const void* p) noexcept {
    const std::lock_guard guard(mutex_);
    // A span whose blocks are all home may be about to return to the page heap, which may free its
    // record. The heap's lock keeps the record readable.
    const std::lock_guard heap_guard(sources_.heap);
    const PageEntry entry = sources_.heap.space().map().at(p);
    if (!is_ours(entry)) return {};
    const Span& span = *entry.span();
    const unsigned index = index_in(span, p);
    if (index >= span.carved) return {};
    char* const block = static_cast<char*>(block_at(span, index));
    if (p >= block + block_bytes()) return {};
    Finding finding{.in_span = true, .home = is_set(span, index), .block = block};
    if (pages::BlockStates* const states = span.states.load(std::memory_order_acquire)) {
        if (sources_.states == States::uses) {
            finding.in_use = states->state(index).load(std::memory_order_relaxed) != 0;
        } else {
            const std::uint16_t wide = states->wide_state(index).load(std::memory_order_relaxed);
            finding.in_use = wide != 0;
            finding.requested = requested_bytes_of(wide);
        }
    }
    return finding;
}

Span* Bucket::span_with_room(SlowPath& path) noexcept {
    if (lists_used_ != 0) return &with_room_[std::bit_width(lists_used_) - 1].front();
    Span* span = new_span(layout_.pages, path);
    // Near a limit, a span that holds a single block may still fit.
    const auto min_pages =
        static_cast<PageCount>(base::ceil_divide(layout_.stride, pages::page_bytes));
    if (span == nullptr && min_pages < layout_.pages) span = new_span(min_pages, path);
    return span;
}

Span* Bucket::new_span(PageCount pages, SlowPath& path) noexcept {
    const pages::PageRequest request{
        .pages = pages,
        .kind = kind_,
        .huge = capacity() >= grown_bucket_bytes &&
                sources_.heap.options().huge_pages != HugePages::never};
    Span* const span = sources_.heap.allocate(request, path);
    if (span == nullptr) return nullptr;
    span->blocks = static_cast<std::uint16_t>(
        std::min(layout_.blocks, blocks_in(span->bytes(), layout_.stride)));
    span->carved = 0;
    span->home = 0;
    std::fill(std::begin(span->home_bits), std::end(span->home_bits), 0);
    if (sources_.states != States::none && !give_states(*span)) {
        sources_.heap.free(*span, path);
        path.refusal = pages::no_records();
        return nullptr;
    }
    list(*span);
    add_capacity(static_cast<std::ptrdiff_t>(span->bytes()));
    return span;
}

// The index of the list for this span, 0 to `fullness_lists` - 1, by the blocks that are not home.
unsigned Bucket::fullness_of(const Span& span) const noexcept {
    return static_cast<unsigned>(span.carved - span.home) * fullness_per_block_ >> fullness_shift;
}

void Bucket::list(Span& span) noexcept {
    span.fullness = static_cast<std::uint8_t>(fullness_of(span));
    with_room_[span.fullness].push_front(span);
    lists_used_ |= 1U << span.fullness;
    span.listed = true;
}

void Bucket::unlist(Span& span) noexcept {
    pages::SpanList& list = with_room_[span.fullness];
    list.erase(pages::SpanList::s_iterator_to(span));
    if (list.empty()) lists_used_ &= ~(1U << span.fullness);
    span.listed = false;
}

unsigned Bucket::take_home(Span& span, void** blocks, unsigned max_count) noexcept {
    unsigned count = 0;
    for (unsigned word = 0; word * 64 < span.carved && span.home != 0; ++word) {
        std::uint64_t& bits = span.home_bits[word];
        while (bits != 0 && count < max_count) {
            blocks[count++] =
                block_at(span, word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
            bits &= bits - 1;
            --span.home;
        }
        if (count == max_count) break;
    }
    return count;
}

unsigned Bucket::carve(Span& span, void** blocks, unsigned max_count) noexcept {
    const unsigned count = std::min<unsigned>(max_count, span.blocks - span.carved);
    for (unsigned i = 0; i < count; ++i) blocks[i] = block_at(span, span.carved + i);
    span.carved = static_cast<std::uint16_t>(span.carved + count);
    return count;
}

// A sized free skips validation; the pointer is validated here at the latest.
Span& Bucket::span_of(void* block) noexcept {
    const PageEntry entry = sources_.heap.space().map().at(block);
    if (is_ours(entry)) {
        Span& span = *entry.span();
        const unsigned index = index_in(span, block);
        if (index < span.carved && block_at(span, index) == block) return span;
    }
    count_failed_check(CheckKind::misuse, sources_.pool_name);
    platform::fail("pool '%s': deallocate: %p was freed as a block of bucket %s and is none; %s",
                   sources_.pool_name, block, base::BytesText(block_bytes()).c_str(), expected);
}

unsigned Bucket::index_in(const Span& span, const void* p) const noexcept {
    const char* const begin = sources_.heap.space().address_of(span.first_page);
    const auto offset = static_cast<std::uint32_t>(static_cast<const char*>(p) - begin);
    return offset / static_cast<std::uint32_t>(layout_.stride);
}

void* Bucket::block_at(const Span& span, unsigned index) const noexcept {
    return sources_.heap.space().address_of(span.first_page) + index * layout_.stride;
}

// Buckets of several series count in one row of the totals, each under its own lock.
void Bucket::add_capacity(std::ptrdiff_t bytes) noexcept {
    const auto more = static_cast<std::uint64_t>(bytes);
    capacity_.store(capacity() + more, std::memory_order_relaxed);
    sources_.totals.bucket_capacity_bytes[row()].fetch_add(more, std::memory_order_relaxed);
}

void Bucket::add_out(std::ptrdiff_t blocks) noexcept {
    const auto more = static_cast<std::uint64_t>(blocks);
    out_.store(out_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    sources_.totals.bucket_out_bytes[row()].fetch_add(more * block_bytes_,
                                                      std::memory_order_relaxed);
}

}  // namespace tensorpool::blocks
