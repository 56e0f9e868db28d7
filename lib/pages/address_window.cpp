#include "pages/address_window.hpp"

#include <algorithm>

#include <tensorpool/detail/address_range.hpp>

#include "base/alignment.hpp"
#include "platform/platform.hpp"
#include "statistics/segment/address_ranges.hpp"

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
    statistics::show_address_ranges(
        {begin, pages * page_bytes},
        {reinterpret_cast<std::uintptr_t>(map_.entries()), pages * sizeof(PageMap::Word)});
    return true;
}

}  // namespace tensorpool::pages
