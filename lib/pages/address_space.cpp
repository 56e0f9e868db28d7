#include "pages/address_space.hpp"

#include <tensorpool/detail/address_range.hpp>

#include "base/block_sizes.hpp"
#include "base/never_destroyed.hpp"
#include "pages/span.hpp"
#include "platform/tools/memory_probes.hpp"
#include "platform/tools/memory_tools.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::pages {
namespace {

using Lender = std::atomic<std::uint32_t>;

constexpr std::size_t largest_window = std::size_t{8} << 40;
constexpr std::size_t smallest_window = std::size_t{16} << 20;
// The alignment of the window, which limits the alignment of blocks.
constexpr std::size_t largest_alignment = std::size_t{1} << 30;

constexpr std::size_t align_table(std::size_t bytes) noexcept {
    return base::align_up(bytes, granule_bytes);
}

/// Shows a range of addresses to readers in other processes. Does nothing before the first pool has
/// its record.
void show_range(statistics::MemoryRange statistics::SegmentHeader::*range, const void* begin,
                std::size_t bytes) noexcept {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return;
    (header->*range)
        .begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_relaxed);
    (header->*range).bytes.store(bytes, std::memory_order_relaxed);
}

}  // namespace

// Places the window below the address at which the system maps memory without a given address, at a
// distance of an eighth of the window, because the system continues downwards (or upwards) from
// there.
bool AddressWindow::set_up() noexcept {
    if (granules_ != 0) return true;
    void* const somewhere = platform::reserve(granule_bytes, granule_bytes);
    if (somewhere == nullptr) return false;
    platform::release(somewhere, granule_bytes);
    const auto end = reinterpret_cast<std::uintptr_t>(somewhere);
    for (std::size_t bytes = largest_window; bytes >= smallest_window; bytes /= 2) {
        if (place_below(end, bytes)) return true;
    }
    return place_anywhere();
}

// Places the window in any range that is free now, for systems that assign addresses from low ones
// up, such as valgrind.
bool AddressWindow::place_anywhere() noexcept {
    for (std::size_t bytes = largest_window; bytes >= smallest_window; bytes /= 2) {
        const std::size_t enough = 4 * bytes;
        void* const found = platform::reserve(enough, granule_bytes);
        if (found == nullptr) continue;
        platform::release(found, enough);
        if (place_below(reinterpret_cast<std::uintptr_t>(found) + enough, bytes)) return true;
    }
    return false;
}

bool AddressWindow::place_below(std::uintptr_t end, std::size_t bytes) noexcept {
    const std::size_t granules = bytes / granule_bytes;
    const std::size_t entries = align_table(bytes / page_bytes * sizeof(PageMap::Word));
    const std::size_t words = align_table(granules * sizeof(PageMap::Word));
    const std::size_t lenders = align_table(granules * sizeof(Lender));
    const std::size_t alignment = std::min(bytes, largest_alignment);
    const std::size_t below_end = bytes + bytes / 8;
    if (end / 2 < below_end + entries + words + lenders + alignment) return false;

    const std::uintptr_t base = base::align_down(end - below_end, alignment);
    auto* const window = reinterpret_cast<std::byte*>(base);
    if (platform::reserve_at(window, granule_bytes) != platform::ReservedAt::done) return false;
    platform::release(window, granule_bytes);
    entries_.set_up(window - entries);
    granule_words_.set_up(window - entries - words);
    lenders_table_.set_up(window - entries - words - lenders);
    // Allocating the tables for one granule shows whether the tables may lie there.
    if (!entries_.grow(granule_pages * sizeof(PageMap::Word)) ||
        !granule_words_.grow(sizeof(PageMap::Word)) || !lenders_table_.grow(sizeof(Lender))) {
        for (GrowingTable* const table : {&entries_, &granule_words_, &lenders_table_}) {
            table->release();
        }
        return false;
    }
    lenders_ = reinterpret_cast<Lender*>(lenders_table_.begin());
    granules_ = static_cast<std::uint32_t>(granules);
    alignment_ = static_cast<PageCount>(alignment / page_bytes);
    map_.set_up(base, reinterpret_cast<PageMap::Word*>(entries_.begin()),
                reinterpret_cast<PageMap::Word*>(granule_words_.begin()));
    return true;
}

bool AddressWindow::describe(std::uint32_t granules) noexcept {
    if (granules <= described_) return true;
    const std::size_t pages = std::size_t{granules} * granule_pages;
    if (!entries_.grow(pages * sizeof(PageMap::Word)) ||
        !granule_words_.grow(granules * sizeof(PageMap::Word)) ||
        !lenders_table_.grow(granules * sizeof(Lender))) {
        return false;
    }
    described_ = granules;
    map_.grow(static_cast<PageCount>(pages));
    const auto begin = reinterpret_cast<std::uintptr_t>(map_.address_of(0));
    detail::pool_addresses.set(begin, pages * page_bytes, map_.entries());
    show_range(&statistics::SegmentHeader::pool_addresses, map_.address_of(0), pages * page_bytes);
    show_range(&statistics::SegmentHeader::page_map, map_.entries(), pages * sizeof(PageMap::Word));
    return true;
}

namespace {

constinit std::atomic<unsigned> exact_pool = ~0U;
constinit std::atomic<ExactSize> exact_size = nullptr;

}  // namespace

void set_exact_size(unsigned pool_number, ExactSize function) noexcept {
    exact_size.store(function, std::memory_order_release);
    exact_pool.store(pool_number, std::memory_order_relaxed);
}

}  // namespace tensorpool::pages

namespace tensorpool::detail {
inline namespace abi_2 {

constinit AddressRange pool_addresses;
static_assert(AddressRange::bytes_per_word == pages::page_bytes);

// The caller holds the block. Entries of a span in use do not change, so they may be read.
std::size_t bytes_of_block_in_use(const void* p) noexcept {
    const pages::PageEntry entry = pages::address_space().map().at(p);
    if (entry.pool_number() == pages::exact_pool.load(std::memory_order_relaxed)) [[unlikely]] {
        // Acquire pairs with the release in `set_exact_size`.
        if (const auto exact = pages::exact_size.load(std::memory_order_acquire)) return exact(p);
    }
    if (entry.is_bucket()) return base::block_bytes(entry.series(), entry.bucket());
    if (entry.is_marked()) return base::block_bytes(0, entry.span()->marked_bucket());
    if (entry.kind() == pages::PageKind::served) return entry.served()->block_bytes(p);
    if (const pages::PlacedBlock* const block = entry.placed()) return block->requested;
    return entry.is_large_in_use() ? entry.span()->bytes() : 0;
}

bool lies_in_a_pool(const void* p) noexcept {
    return pages::address_space().is_lent(p);
}

}  // namespace abi_2
}  // namespace tensorpool::detail

namespace tensorpool::pages {
namespace {

constexpr std::size_t smallest_loan = std::size_t{64} << 20;
constexpr std::size_t largest_loan = std::size_t{1} << 30;
// The addresses kept for guarded blocks, and those for marked ones: each at most a sixty-fourth of
// the window, and of the addresses that the process may still reserve, because the page map has
// words for them too.
constexpr std::size_t max_guarded = std::size_t{8} << 30;
constexpr std::size_t max_marked = std::size_t{16} << 30;
constexpr std::size_t low_divisor = 64;
// Longer runs are not marked for memory tools when they are returned: they were never in use.
constexpr std::size_t max_opened = std::size_t{64} << 30;

constinit base::NeverDestroyed<AddressSpace> the_address_space;

constexpr std::uint32_t granules_of(PageCount pages) noexcept {
    return (pages + (granule_pages - 1)) / granule_pages;
}

}  // namespace

AddressSpace& address_space() noexcept {
    return the_address_space.get();
}

bool AddressSpace::set_up() noexcept {
    if (window_.granules() != 0) return true;
    if (!window_.set_up()) return false;
    const std::size_t bytes = window_.granules() * granule_bytes;
    const std::size_t low = std::min(bytes, platform::available_address_space()) / low_divisor;
    guarded_granules_ = static_cast<std::uint32_t>(std::min(max_guarded, low) / granule_bytes);
    const auto marked = static_cast<std::uint32_t>(std::min(max_marked, low) / granule_bytes);
    for_marked_ = {guarded_granules_, guarded_granules_ + marked};
    for_others_ = {for_marked_.end, window_.granules()};
    return true;
}

PageRun AddressSpace::lend(unsigned pool_number, PageCount needed, PageCount wanted,
                           PageCount alignment, unsigned shard) noexcept {
    const std::lock_guard guard(mutex_);
    if (!set_up()) return {};
    const std::uint32_t min_count = granules_of(needed);
    const std::uint32_t max_count = std::max(min_count, granules_of(wanted));
    const std::uint32_t unit = std::max(granules_of(alignment), 1U);
    if (shard == marked_shard && !uses_low_) return {};
    Part& part = shard == marked_shard ? for_marked_ : for_others_;
    Granules run = reserve(part, max_count, unit);
    if (run.count == 0 && max_count != min_count) run = reserve(part, min_count, unit);
    if (run.count == 0 && forget_foreign()) run = reserve(part, min_count, unit);
    if (run.count == 0) return {};
    set_lender(run, (pool_number + 1) | shard << pool_bits);
    if (run.first == part.first_free) part.first_free = run.end();
    return run.pages();
}

void AddressSpace::take_back(unsigned pool_number, PageRun granules) noexcept {
    const std::lock_guard guard(mutex_);
    const std::uint32_t pool = pool_number + 1;
    const std::uint32_t last =
        std::min((granules.first + granules.count) / granule_pages, window_.described());
    for (std::uint32_t first = granules.first / granule_pages; first < last; ++first) {
        if (pool_of(lender_of(first)) != pool) continue;
        std::uint32_t end = first;
        while (end < last && pool_of(lender_of(end)) == pool) ++end;
        const Granules run{first, end - first};
        // The granules belong to no pool before other code can map something there.
        set_lender(run, foreign);
        const bool is_free = give_back(run);
        set_lender(run, is_free ? 0 : retired);
        if (is_free) note_free(first);
        first = end;
    }
}

// Returns false if the addresses stay reserved. The system may refuse to unmap them if the process
// has no room for more mappings.
bool AddressSpace::give_back(Granules run) noexcept {
    map().clear(run.pages());
    memory_.forget(run.pages());
    char* const begin = address_of(run.pages().first);
    const std::size_t bytes = run.count * granule_bytes;
    // Not `mark_returned`: closing all of the run first would take memory of AddressSanitizer for
    // addresses that were never committed.
    if (platform::memory_tool() == platform::MemoryTool::memcheck) {
        platform::mark_freed_within(begin, bytes);
    }
    if (bytes < max_opened) platform::mark_open(begin, bytes);
    if (platform::release(begin, bytes)) return true;
    (void)platform::decommit(begin, bytes);
    return false;
}

std::uint32_t AddressSpace::lender_at(const void* p) const noexcept {
    const std::size_t pages = map().page_count();
    const std::size_t page = map().offset_of(p) / page_bytes;
    if (page >= pages) return 0;
    return window_.lenders()[page / granule_pages].load(std::memory_order_relaxed);
}

PageCount AddressSpace::usual_loan(std::size_t lent_bytes) const noexcept {
    const std::size_t bytes = std::min(std::clamp(lent_bytes, smallest_loan, largest_loan),
                                       platform::available_address_space() / 16);
    return std::max(static_cast<PageCount>(bytes / granule_bytes), 1U) * granule_pages;
}

PageCount AddressSpace::reserve_guarded() noexcept {
    const std::lock_guard guard(mutex_);
    if (!set_up()) return 0;
    const Granules run{0, guarded_granules_};
    if (!uses_low_ || run.count == 0 || !window_.describe(run.end())) return 0;
    if (platform::reserve_at(address_of(0), run.count * granule_bytes) !=
        platform::ReservedAt::done)
        return 0;
    set_lender(run, for_guarded);
    return run.pages().count;
}

std::uintptr_t AddressSpace::first_unguarded() noexcept {
    const std::lock_guard guard(mutex_);
    if (!set_up()) {
        uses_low_ = false;
        return 1;
    }
    return reinterpret_cast<std::uintptr_t>(address_of(for_marked_.end * granule_pages));
}

// Reserves a run from the system and makes the map describe it, but does not lend it yet. Returns
// an empty run if the system refuses addresses for the run or memory for the map.
AddressSpace::Granules AddressSpace::reserve(const Part& part, std::uint32_t count,
                                             std::uint32_t alignment) noexcept {
    for (;;) {
        const Granules run = find_free(part, count, alignment);
        if (run.count == 0) return {};
        switch (platform::reserve_at(address_of(run.pages().first), run.count * granule_bytes)) {
            case platform::ReservedAt::done:
                if (!window_.describe(run.end())) {
                    platform::release(address_of(run.pages().first), run.count * granule_bytes);
                    return {};
                }
                skipped_ = 1;
                return run;
            case platform::ReservedAt::taken:
                if (!go_around(run, part.end)) return {};
                break;
            case platform::ReservedAt::refused:
                return {};
        }
    }
}

AddressSpace::Granules AddressSpace::find_free(const Part& part, std::uint32_t count,
                                               std::uint32_t alignment) const noexcept {
    auto first = static_cast<std::uint32_t>(base::align_up(part.first_free, alignment));
    while (std::uint64_t{first} + count <= part.end) {
        std::uint32_t end = first + count;
        while (end != first && lender_of(end - 1) == 0) --end;
        if (end == first) return {first, count};
        first = static_cast<std::uint32_t>(base::align_up(end, alignment));
    }
    return {};
}

// Marks foreign mappings in the run, so that they are not tried again: the first foreign granule
// and, because a foreign mapping may be long, twice as many granules behind it each time in a row,
// up to `limit`.
// Returns false if there is no memory for the marks.
bool AddressSpace::go_around(Granules taken, std::uint32_t limit) noexcept {
    std::uint32_t first = taken.first;
    for (std::uint32_t end = taken.end(); end - first > 1;) {
        const std::uint32_t middle = first + (end - first) / 2;
        char* const begin = address_of(first * granule_pages);
        const std::size_t bytes = (middle - first) * granule_bytes;
        if (platform::reserve_at(begin, bytes) == platform::ReservedAt::done) {
            platform::release(begin, bytes);
            first = middle;
        } else {
            end = middle;
        }
    }
    const std::uint32_t end = first + std::min(skipped_, limit - first);
    if (!window_.describe(end)) return false;
    for (std::uint32_t granule = first; granule != end; ++granule) {
        if (lender_of(granule) == 0) set_lender({granule, 1}, foreign);
    }
    skipped_ = std::min(skipped_ * 2, window_.granules());
    return true;
}

// Removes all marks of foreign mappings, because those may have been unmapped. Returns false if
// there were none.
bool AddressSpace::forget_foreign() noexcept {
    bool any = false;
    for (std::uint32_t granule = 0; granule != window_.described(); ++granule) {
        if (lender_of(granule) != foreign) continue;
        set_lender({granule, 1}, 0);
        note_free(granule);
        any = true;
    }
    skipped_ = 1;
    return any;
}

}  // namespace tensorpool::pages
