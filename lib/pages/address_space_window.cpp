// The position of the window, and the search for free addresses in it.

#include <algorithm>

#include <tensorpool/detail/address_range.hpp>

#include "base/alignment.hpp"
#include "pages/address_space.hpp"
#include "platform/platform.hpp"
#include "statistics/segment/address_ranges.hpp"

namespace tensorpool::pages {
namespace {

constexpr std::size_t granule_bytes = granule_pages * page_bytes;
constexpr std::size_t largest_window = std::size_t{8} << 40;
constexpr std::size_t smallest_window = std::size_t{16} << 20;
// The addresses kept for guarded blocks, and those for marked ones: each at most a sixty-fourth of
// the window, and of the addresses that the process may still reserve, because the page map has
// words for them too.
constexpr std::size_t max_guarded = std::size_t{8} << 30;
constexpr std::size_t max_marked = std::size_t{16} << 30;
constexpr std::size_t low_divisor = 64;
// The alignment of the window, which limits the alignment of blocks.
constexpr std::size_t largest_alignment = std::size_t{1} << 30;

constexpr std::size_t align_table(std::size_t bytes) noexcept {
    return base::align_up(bytes, granule_bytes);
}

}  // namespace

// Places the window below the address at which the system maps memory without a given address, at a
// distance of an eighth of the window, because the system continues downwards (or upwards) from
// there.
bool AddressSpace::set_up() noexcept {
    void* const somewhere = platform::reserve(granule_bytes, granule_bytes);
    if (somewhere == nullptr) return false;
    platform::release(somewhere, granule_bytes);
    const auto end = reinterpret_cast<std::uintptr_t>(somewhere);
    for (std::size_t bytes = largest_window; bytes >= smallest_window; bytes /= 2) {
        if (try_set_up(end, bytes)) return true;
    }
    return set_up_anywhere();
}

// Places the window in any range that is free now, for systems that assign addresses from low ones
// up, such as valgrind.
bool AddressSpace::set_up_anywhere() noexcept {
    for (std::size_t bytes = largest_window; bytes >= smallest_window; bytes /= 2) {
        const std::size_t enough = 4 * bytes;
        void* const found = platform::reserve(enough, granule_bytes);
        if (found == nullptr) continue;
        platform::release(found, enough);
        if (try_set_up(reinterpret_cast<std::uintptr_t>(found) + enough, bytes)) return true;
    }
    return false;
}

bool AddressSpace::try_set_up(std::uintptr_t end, std::size_t bytes) noexcept {
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
    const std::size_t low = std::min(bytes, platform::available_address_space()) / low_divisor;
    guarded_granules_ = static_cast<std::uint32_t>(std::min(max_guarded, low) / granule_bytes);
    const auto marked = static_cast<std::uint32_t>(std::min(max_marked, low) / granule_bytes);
    for_marked_ = {guarded_granules_, guarded_granules_ + marked};
    for_others_ = {for_marked_.end, granules_};
    alignment_ = static_cast<PageCount>(alignment / page_bytes);
    map_.set_up(base, reinterpret_cast<PageMap::Word*>(entries_.begin()),
                reinterpret_cast<PageMap::Word*>(granule_words_.begin()));
    return true;
}

PageCount AddressSpace::reserve_guarded() noexcept {
    const std::lock_guard guard(mutex_);
    if (granules_ == 0 && !set_up()) return 0;
    const Granules run{0, guarded_granules_};
    if (!uses_low_ || run.count == 0 || !grow_map(run.end())) return 0;
    if (platform::reserve_at(address_of(0), run.count * granule_bytes) !=
        platform::ReservedAt::done)
        return 0;
    set_lender(run, for_guarded);
    return run.pages().count;
}

std::uintptr_t AddressSpace::first_unguarded() noexcept {
    const std::lock_guard guard(mutex_);
    if (granules_ == 0 && !set_up()) {
        uses_low_ = false;
        return 1;
    }
    return reinterpret_cast<std::uintptr_t>(address_of(for_marked_.end * granule_pages));
}

void AddressSpace::note_free(std::uint32_t granule) noexcept {
    Part& part = granule < for_marked_.end ? for_marked_ : for_others_;
    part.first_free = std::min(part.first_free, granule);
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
                if (!grow_map(run.end())) {
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
    if (!grow_map(end)) return false;
    for (std::uint32_t granule = first; granule != end; ++granule) {
        if (lender_of(granule) == 0) set_lender({granule, 1}, foreign);
    }
    skipped_ = std::min(skipped_ * 2, granules_);
    return true;
}

// Removes all marks of foreign mappings, because those may have been unmapped. Returns false if
// there were none.
bool AddressSpace::forget_foreign() noexcept {
    bool any = false;
    for (std::uint32_t granule = 0; granule != mapped_; ++granule) {
        if (lender_of(granule) != foreign) continue;
        set_lender({granule, 1}, 0);
        note_free(granule);
        any = true;
    }
    skipped_ = 1;
    return any;
}

bool AddressSpace::grow_map(std::uint32_t granules) noexcept {
    if (granules <= mapped_) return true;
    const std::size_t pages = std::size_t{granules} * granule_pages;
    if (!entries_.grow(pages * sizeof(PageMap::Word)) ||
        !granule_words_.grow(granules * sizeof(PageMap::Word)) ||
        !lenders_table_.grow(granules * sizeof(Lender))) {
        return false;
    }
    mapped_ = granules;
    map_.grow(static_cast<PageCount>(pages));
    detail::pool_addresses.set(reinterpret_cast<std::uintptr_t>(address_of(0)), pages * page_bytes,
                               map_.entries());
    statistics::show_address_ranges(
        {reinterpret_cast<std::uintptr_t>(address_of(0)), pages * page_bytes},
        {reinterpret_cast<std::uintptr_t>(map_.entries()), pages * sizeof(PageMap::Word)});
    return true;
}

void AddressSpace::set_lender(Granules run, std::uint32_t lender) noexcept {
    for (std::uint32_t granule = run.first; granule != run.end(); ++granule) {
        lenders_[granule].store(lender, std::memory_order_relaxed);
    }
}

}  // namespace tensorpool::pages
