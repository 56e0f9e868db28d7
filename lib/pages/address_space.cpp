#include "pages/address_space.hpp"

#include <algorithm>
#include <bit>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/detail/buckets.hpp>

#include "base/alignment.hpp"
#include "base/never_destroyed.hpp"
#include "pages/span.hpp"
#include "platform/platform.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

constinit AddressRange pool_addresses;

// Its holder may read the entries of a span in use: they do not change.
std::size_t bytes_of_block_in_use(const void* p) noexcept {
    const pages::PageEntry entry = pages::address_space().map().at(p);
    if (entry.is_bucket()) return bucket_bytes(entry.bucket());
    return entry.kind() == pages::PageKind::large_in_use ? entry.span()->bytes() : 0;
}

}  // namespace abi_2
}  // namespace tensorpool::detail

namespace tensorpool::pages {
namespace {

constexpr std::size_t granule_bytes = granule_pages * page_bytes;
constexpr std::size_t largest_reservation = std::size_t{1} << 40;
// What the reservation is aligned to, so that blocks can be. The slack is cut off at once.
constexpr std::size_t largest_alignment = std::size_t{1} << 30;
constexpr std::size_t smallest_reservation = std::size_t{16} << 20;
// One page of the map describes one granule, where the system's page is the heap's.
constexpr std::size_t map_bytes_of_granule = granule_pages * sizeof(PageMap::Word);

constinit base::NeverDestroyed<AddressSpace> the_address_space;

std::size_t map_bytes(std::size_t reservation) noexcept {
    return reservation / page_bytes * sizeof(PageMap::Word);
}
std::size_t granule_words_bytes(std::size_t reservation) noexcept {
    return base::align_up(reservation / granule_bytes * sizeof(PageMap::Word),
                          platform::page_bytes());
}
std::size_t lenders_bytes(std::size_t reservation) noexcept {
    return base::align_up(reservation / granule_bytes * sizeof(std::uint16_t),
                          platform::page_bytes());
}

}  // namespace

AddressSpace& address_space() noexcept {
    return the_address_space.get();
}

PageRun AddressSpace::lend(unsigned pool_number, PageCount needed, PageCount wanted) noexcept {
    const std::lock_guard guard(mutex_);
    if (granules_ == 0 && !set_up()) return {};
    PageRun found = find_free(std::max(needed, wanted));
    if (found.count == 0) found = find_free(needed);
    if (found.count == 0) return {};

    const std::uint32_t first = found.first / granule_pages;
    const std::uint32_t count = found.count / granule_pages;
    std::byte* const entries = reinterpret_cast<std::byte*>(map_.entries());
    const std::size_t from = base::align_down(first * map_bytes_of_granule, platform::page_bytes());
    const std::size_t to =
        base::align_up((first + count) * map_bytes_of_granule, platform::page_bytes());
    if (!platform::commit(entries + from, to - from)) return {};

    std::fill_n(lenders_ + first, count, static_cast<Lender>(pool_number + 1));
    if (first == first_free_) first_free_ = first + count;
    return found;
}

void AddressSpace::take_back(unsigned pool_number) noexcept {
    const std::lock_guard guard(mutex_);
    const auto lender = static_cast<Lender>(pool_number + 1);
    for (std::uint32_t first = 0; first < granules_; ++first) {
        if (lenders_[first] != lender) continue;
        std::uint32_t end = first;
        while (end < granules_ && lenders_[end] == lender) ++end;
        const std::uint32_t count = end - first;
        clear_entries(first, count);
        // What cannot be dropped is not lent again: the next pool expects zeros. Nor does it expect
        // the policies of this one, but can live with them where the system has no mapping left.
        char* const begin = address_of(first * granule_pages);
        const bool dropped = platform::forget(begin, count * granule_bytes) ||
                             platform::decommit(begin, count * granule_bytes);
        moved_.remove({first * granule_pages, count * granule_pages});
        std::fill_n(lenders_ + first, count, dropped ? Lender{0} : retired);
        if (dropped) first_free_ = std::min(first_free_, first);
        first = end;
    }
    moved_count_.store(moved_.count(), std::memory_order_relaxed);
}

bool AddressSpace::is_lent_to(unsigned pool_number, const void* p) noexcept {
    const std::lock_guard guard(mutex_);
    if (granules_ == 0) return false;
    const auto offset =
        reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(address_of(0));
    const std::size_t granule = offset / granule_bytes;
    return granule < granules_ && lenders_[granule] == static_cast<Lender>(pool_number + 1);
}

PageCount AddressSpace::usual_loan() noexcept {
    const std::lock_guard guard(mutex_);
    if (granules_ == 0 && !set_up()) return granule_pages;
    const PageCount share = std::min<PageCount>(map_.page_count() / 1024, PageCount{1} << 18);
    return std::max<PageCount>(share / granule_pages * granule_pages, granule_pages);
}

PageCount AddressSpace::most_alignment() noexcept {
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
        forget_moved({static_cast<PageNumber>(from / page_bytes),
                      static_cast<PageCount>((to - from) / page_bytes)});
    }
    // The first and the last granule may hold entries of neighbours, and of the run itself.
    const PageNumber first = run.first / granule_pages + 1;
    const PageNumber end = (run.first + run.count - 1) / granule_pages;
    if (end > first) (void)drop_entries(first, end - first);
    return true;
}

bool AddressSpace::set_up() noexcept {
    const std::size_t left = platform::available_address_space();
    std::size_t bytes = largest_reservation;
    while (bytes > left / 2 - std::min(left / 2, map_bytes(bytes))) bytes /= 2;
    for (; bytes >= smallest_reservation; bytes /= 2) {
        if (try_set_up(bytes)) return true;
    }
    return false;
}

bool AddressSpace::try_set_up(std::size_t bytes) noexcept {
    using platform::Access;
    const std::size_t unit = platform::page_bytes();
    const std::size_t alignment = std::min(bytes, largest_alignment);
    void* const pages = platform::reserve(bytes, alignment, Access::none);
    void* const entries = platform::reserve(map_bytes(bytes), unit, Access::read_zeros);
    const std::size_t table_bytes = granule_words_bytes(bytes) + lenders_bytes(bytes);
    void* const tables = platform::map(table_bytes, unit);
    if (pages == nullptr || entries == nullptr || tables == nullptr) {
        if (pages != nullptr) platform::release(pages, bytes);
        if (entries != nullptr) platform::release(entries, map_bytes(bytes));
        if (tables != nullptr) platform::unmap(tables, table_bytes);
        return false;
    }
    lenders_ =
        reinterpret_cast<Lender*>(static_cast<std::byte*>(tables) + granule_words_bytes(bytes));
    granules_ = static_cast<std::uint32_t>(bytes / granule_bytes);
    alignment_ = static_cast<PageCount>(alignment / page_bytes);
    map_.set_up(reinterpret_cast<std::uintptr_t>(pages), static_cast<PageCount>(bytes / page_bytes),
                static_cast<PageMap::Word*>(entries), static_cast<PageMap::Word*>(tables));
    detail::pool_addresses.set(reinterpret_cast<std::uintptr_t>(pages), bytes);
    return true;
}

PageRun AddressSpace::find_free(PageCount pages) const noexcept {
    const std::uint32_t wanted = (pages + granule_pages - 1) / granule_pages;
    std::uint32_t free_before = 0;
    for (std::uint32_t granule = first_free_; granule < granules_; ++granule) {
        free_before = lenders_[granule] == 0 ? free_before + 1 : 0;
        if (free_before == wanted) {
            return {(granule + 1 - wanted) * granule_pages, wanted * granule_pages};
        }
    }
    return {};
}

bool AddressSpace::drop_entries(std::uint32_t first_granule, std::uint32_t count) noexcept {
    const std::size_t unit = platform::page_bytes();
    const std::size_t from = base::align_up(first_granule * map_bytes_of_granule, unit);
    const std::size_t to = base::align_down((first_granule + count) * map_bytes_of_granule, unit);
    if (to <= from) return false;
    std::byte* const entries = reinterpret_cast<std::byte*>(map_.entries());
    if (!platform::decommit(entries + from, to - from)) return false;
    // Where the system drops access with the pages, readers still want zeros.
    return platform::commit(entries + from, to - from) && to - from == count * map_bytes_of_granule;
}

void AddressSpace::clear_entries(std::uint32_t first_granule, std::uint32_t count) noexcept {
    for (std::uint32_t granule = first_granule; granule < first_granule + count; ++granule) {
        map_.granules()[granule].store(0, std::memory_order_release);
    }
    if (drop_entries(first_granule, count)) return;
    const PageNumber end = (first_granule + count) * granule_pages;
    for (PageNumber page = first_granule * granule_pages; page < end; ++page) {
        map_.entries()[page].store(0, std::memory_order_release);
    }
}

}  // namespace tensorpool::pages
