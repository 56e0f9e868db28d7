#include "pages/address_space.hpp"

#include <algorithm>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/detail/buckets.hpp>

#include "base/alignment.hpp"
#include "base/block_sizes.hpp"
#include "base/never_destroyed.hpp"
#include "pages/served_memory.hpp"
#include "pages/span.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_probes.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::pages {
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

constexpr std::size_t granule_bytes = granule_pages * page_bytes;
// If the system's pages are as large as the heap's, one page of the map describes one granule.
constexpr std::size_t map_bytes_of_granule = granule_pages * sizeof(PageMap::Word);

constexpr std::size_t smallest_loan = std::size_t{64} << 20;
constexpr std::size_t largest_loan = std::size_t{1} << 30;
constexpr std::uint32_t max_marked_granules = (std::size_t{64} << 30) / granule_bytes;

constinit base::NeverDestroyed<AddressSpace> the_address_space;

constexpr std::uint32_t granules_of(PageCount pages) noexcept {
    return (pages + (granule_pages - 1)) / granule_pages;
}

}  // namespace

AddressSpace& address_space() noexcept {
    return the_address_space.get();
}

PageRun AddressSpace::lend(unsigned pool_number, PageCount needed, PageCount wanted,
                           PageCount alignment, unsigned shard) noexcept {
    const std::lock_guard guard(mutex_);
    if (granules_ == 0 && !set_up()) return {};
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
    const std::uint32_t last = std::min((granules.first + granules.count) / granule_pages, mapped_);
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
    clear_entries(run);
    moved_.remove(run.pages());
    moved_count_.store(moved_.count(), std::memory_order_relaxed);
    char* const begin = address_of(run.pages().first);
    // Not `mark_returned`: closing all of the run first would take memory of AddressSanitizer for
    // addresses that were never committed. A very long run was never in use.
    if (platform::memory_tool() == platform::MemoryTool::memcheck) {
        platform::mark_freed_within(begin, run.count * granule_bytes);
    }
    if (run.count < max_marked_granules) platform::mark_open(begin, run.count * granule_bytes);
    if (platform::release(begin, run.count * granule_bytes)) return true;
    (void)platform::decommit(begin, run.count * granule_bytes);
    return false;
}

std::uint32_t AddressSpace::lender_at(const void* p) const noexcept {
    const std::size_t pages = map_.page_count();
    const std::size_t page = map_.offset_of(p) / page_bytes;
    if (page >= pages) return 0;
    return lenders_[page / granule_pages].load(std::memory_order_relaxed);
}

bool AddressSpace::is_lent_to(unsigned pool_number, const void* p) const noexcept {
    return pool_of(lender_at(p)) == pool_number + 1;
}

bool AddressSpace::is_lent(const void* p) const noexcept {
    const std::uint32_t lender = lender_at(p);
    return lender != 0 && lender != foreign;
}

PageCount AddressSpace::usual_loan(std::size_t lent_bytes) const noexcept {
    const std::size_t bytes = std::min(std::clamp(lent_bytes, smallest_loan, largest_loan),
                                       platform::available_address_space() / 16);
    return std::max(static_cast<PageCount>(bytes / granule_bytes), 1U) * granule_pages;
}

PageCount AddressSpace::max_alignment() noexcept {
    const std::lock_guard guard(mutex_);
    if (granules_ == 0 && !set_up()) return granule_pages;
    return alignment_;
}

bool AddressSpace::commit(PageRun run) noexcept {
    const std::size_t unit = platform::page_bytes();
    const std::size_t from = base::align_down(run.first * page_bytes, unit);
    const std::size_t to = base::align_up((std::size_t{run.first} + run.count) * page_bytes, unit);
    return platform::commit(address_of(0) + from, to - from);
}

bool AddressSpace::decommit(PageRun run) noexcept {
    const std::size_t unit = platform::page_bytes();
    const std::size_t from = base::align_up(run.first * page_bytes, unit);
    const std::size_t to =
        base::align_down((std::size_t{run.first} + run.count) * page_bytes, unit);
    if (to > from) {
        if (!platform::decommit(address_of(0) + from, to - from)) return false;
        platform::probe_unmapping(address_of(0) + from, to - from);
        forget_moved({static_cast<PageNumber>(from / page_bytes),
                      static_cast<PageCount>((to - from) / page_bytes)});
    }
    // The first and the last granule may contain entries of neighbours and of the run itself.
    const PageNumber first = run.first / granule_pages + 1;
    const PageNumber end = (run.first + run.count - 1) / granule_pages;
    if (end > first) (void)drop_entries({first, end - first});
    return true;
}

bool AddressSpace::offer(PageRun run) noexcept {
    const std::size_t unit = platform::page_bytes();
    const std::size_t from = base::align_up(run.first * page_bytes, unit);
    const std::size_t to =
        base::align_down((std::size_t{run.first} + run.count) * page_bytes, unit);
    return to <= from || platform::offer(address_of(0) + from, to - from);
}

// Drops those pages of the map that contain only entries of these granules. Returns the run of heap
// pages whose entries were dropped.
PageRun AddressSpace::drop_entries(Granules run) noexcept {
    const std::size_t unit = platform::page_bytes();
    const std::size_t from = base::align_up(run.first * map_bytes_of_granule, unit);
    const std::size_t to = base::align_down(run.end() * map_bytes_of_granule, unit);
    if (to <= from) return {};
    // Readers take no lock, so the entries must stay readable at all times.
    if (!platform::decommit_keeps_access()) return {};
    std::byte* const entries = reinterpret_cast<std::byte*>(map_.entries());
    if (!platform::decommit(entries + from, to - from)) return {};
    return {static_cast<PageNumber>(from / sizeof(PageMap::Word)),
            static_cast<PageCount>((to - from) / sizeof(PageMap::Word))};
}

void AddressSpace::clear_entries(Granules run) noexcept {
    for (std::uint32_t granule = run.first; granule != run.end(); ++granule) {
        map_.granules()[granule].store(0, std::memory_order_release);
    }
    const PageRun all = run.pages();
    const PageRun dropped = drop_entries(run);
    const auto clear = [&](PageNumber page, PageNumber end) {
        for (; page != end; ++page) map_.entries()[page].store(0, std::memory_order_release);
    };
    if (dropped.count == 0) return clear(all.first, all.first + all.count);
    clear(all.first, dropped.first);
    clear(dropped.first + dropped.count, all.first + all.count);
}

}  // namespace tensorpool::pages
