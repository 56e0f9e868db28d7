#pragma once

#include <tensorpool/detail/address_range.hpp>

#include "base/block_sizes.hpp"
#include "base/lockable.hpp"
#include "base/never_destroyed.hpp"
#include "pages/heap/shards.hpp"
#include "pages/lent_memory.hpp"
#include "pages/span.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::pages {

/// A zero-initialized array at a fixed address that grows on demand. It reserves nothing ahead. Not
/// thread-safe.
class GrowingTable {
public:
    void set_up(std::byte* begin) noexcept { begin_ = begin; }
    std::byte* begin() const noexcept { return begin_; }

    /// Makes the bytes [from, to) writable, and those before `from` that are new readable, which
    /// takes no memory by any limit but that of addresses. Returns false, and changes nothing that
    /// was there, if the system refuses or if other code has mapped something there.
    bool grow(std::size_t from, std::size_t to) noexcept {
        from = base::align_down(from, unit);
        to = base::align_up(to, unit);
        const std::size_t former = bytes_;
        if (to > former && !add(from, to)) return false;
        return from >= former || from >= readable_ ||
               platform::commit(begin_ + from, std::min(to, former) - from);
    }

    /// Unmaps the table, which is empty afterwards.
    void release() noexcept {
        if (bytes_ != 0) platform::release(begin_, bytes_);
        bytes_ = readable_ = 0;
    }

private:
    bool add(std::size_t from, std::size_t to) noexcept {
        std::byte* const more = begin_ + bytes_;
        const std::size_t readable = std::max(from, bytes_) - bytes_;
        if (platform::reserve_at(more, to - bytes_) != platform::ReservedAt::done) return false;
        const bool is_done = (readable == 0 || platform::make_readable(more, readable)) &&
                             platform::commit(more + readable, to - bytes_ - readable);
        if (!is_done) {
            platform::release(more, to - bytes_);
            return false;
        }
        if (readable != 0) readable_ = from;
        bytes_ = to;
        return true;
    }

    // No system has larger pages.
    static constexpr std::size_t unit = std::size_t{64} << 10;

    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t readable_ = 0;  // bytes before this may be readable only
};

/// Shows a range of addresses to readers in other processes. Does nothing before the first pool has
/// its record.
inline void show_range(statistics::MemoryRange statistics::SegmentHeader::*range, const void* begin,
                       std::size_t bytes) noexcept {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return;
    (header->*range)
        .begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_relaxed);
    (header->*range).bytes.store(bytes, std::memory_order_relaxed);
}

constexpr std::size_t align_table(std::size_t bytes) noexcept {
    return base::align_up(bytes, granule_bytes);
}

// The alignment of the window, which limits the alignment of blocks.
inline constexpr std::size_t largest_alignment = std::size_t{1} << 30;

inline constexpr std::size_t smallest_window = std::size_t{16} << 20;
inline constexpr std::size_t largest_window = std::size_t{8} << 40;

using Lender = std::atomic<std::uint32_t>;

/// The position of the process's address space, a window of up to 8 TiB in which nothing is
/// reserved ahead, and the tables that describe its granules: the page map and a word for the
/// lender of each. The tables lie below the window and grow with what is lent. Guarded by the lock
/// of the address space; look-ups in the tables take no lock.
class AddressWindow {
public:
    constexpr AddressWindow() noexcept = default;

    /// Chooses the position, once. Returns false, and may be called again, if the system has no
    /// addresses or no memory for the tables. Places the window below the address at which the
    /// system maps memory without a given address, at a distance of an eighth of the window,
    /// because the system continues downwards (or upwards) from there.
    bool set_up() noexcept {
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
    /// Makes the tables describe the granules before `end`. Page map entries of those before
    /// `first` that are new can only be read, until a call describes these granules from there on.
    /// Returns false if the system refuses addresses or memory for the tables.
    bool describe(std::uint32_t first, std::uint32_t end) noexcept {
        const auto entry_bytes = [](std::size_t granules) {
            return granules * granule_pages * sizeof(PageMap::Word);
        };
        if (!entries_.grow(entry_bytes(first), entry_bytes(end))) return false;
        if (end <= described_) return true;
        if (!granule_words_.grow(0, end * sizeof(PageMap::Word)) ||
            !lenders_table_.grow(0, end * sizeof(Lender))) {
            return false;
        }
        const std::size_t pages = std::size_t{end} * granule_pages;
        described_ = end;
        map_.grow(static_cast<PageCount>(pages));
        const auto begin = reinterpret_cast<std::uintptr_t>(map_.address_of(0));
        detail::pool_addresses.set(begin, pages * page_bytes, map_.entries());
        show_range(&statistics::SegmentHeader::pool_addresses, map_.address_of(0),
                   pages * page_bytes);
        show_range(&statistics::SegmentHeader::page_map, map_.entries(),
                   pages * sizeof(PageMap::Word));
        return true;
    }

    /// The number of granules of the window; 0 before it is set up.
    std::uint32_t granules() const noexcept { return granules_; }
    std::uint32_t described() const noexcept { return described_; }
    /// The largest alignment in pages for which a page whose number is a multiple of it also has an
    /// address that is.
    PageCount alignment() const noexcept { return alignment_; }

    constexpr PageMap& map() noexcept { return map_; }
    const PageMap& map() const noexcept { return map_; }
    /// A word for each granule that the tables describe, which is 0 at first.
    std::atomic<std::uint32_t>* lenders() const noexcept { return lenders_; }

private:
    // Places the window in any range that is free now, for systems that assign addresses from low
    // ones up, such as valgrind.
    bool place_anywhere() noexcept {
        for (std::size_t bytes = largest_window; bytes >= smallest_window; bytes /= 2) {
            const std::size_t enough = 4 * bytes;
            void* const found = platform::reserve(enough, granule_bytes);
            if (found == nullptr) continue;
            platform::release(found, enough);
            if (place_below(reinterpret_cast<std::uintptr_t>(found) + enough, bytes)) return true;
        }
        return false;
    }
    bool place_below(std::uintptr_t end, std::size_t bytes) noexcept {
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
        if (!entries_.grow(0, granule_pages * sizeof(PageMap::Word)) ||
            !granule_words_.grow(0, sizeof(PageMap::Word)) ||
            !lenders_table_.grow(0, sizeof(Lender))) {
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

    PageMap map_;
    // The map uses the first two.
    GrowingTable entries_;
    GrowingTable granule_words_;
    GrowingTable lenders_table_;
    std::atomic<std::uint32_t>* lenders_ = nullptr;
    std::uint32_t granules_ = 0;
    std::uint32_t described_ = 0;
    PageCount alignment_ = granule_pages;
};

constexpr std::uint32_t granules_of(PageCount pages) noexcept {
    return (pages + (granule_pages - 1)) / granule_pages;
}

// Longer runs are not marked for memory tools when they are returned: they were never in use.
inline constexpr std::size_t max_opened = std::size_t{64} << 30;

// The addresses kept for guarded blocks, and those for marked ones: each at most a sixty-fourth of
// the window, and of the addresses that the process may still reserve, because the page map has
// words for them too.
inline constexpr std::size_t low_divisor = 64;
inline constexpr std::size_t max_guarded = std::size_t{8} << 30;
inline constexpr std::size_t max_marked = std::size_t{16} << 30;

inline constexpr std::size_t largest_loan = std::size_t{1} << 30;
inline constexpr std::size_t smallest_loan = std::size_t{64} << 20;

/// The address space that the process's pools share. It lends runs of granules of its window to
/// pools, which it identifies by number, from the lowest free address up, and skips ranges where
/// others have mapped something. The lowest addresses of the window are kept for guarded blocks
/// and, behind these, for marked small blocks, so that a free recognizes both by their address.
/// Thread-safe.
class AddressSpace : public base::Lockable {
public:
    constexpr AddressSpace() noexcept = default;

    /// Lends a run of `wanted` pages to a shard of a pool, or of `needed` pages if no free run is
    /// that long, each rounded up to whole granules. The run begins at a multiple of `alignment`
    /// pages, a power of two. Its pages are not committed; its part of the page map is. Returns an
    /// empty run on failure. The shard `marked_shard` gets low addresses, and no others.
    PageRun lend(unsigned pool_number, PageCount needed, PageCount wanted, PageCount alignment = 1,
                 unsigned shard = 0) noexcept {
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
    /// The shard of each pool's heap that borrows the addresses kept for marked small blocks.
    static constexpr unsigned marked_shard = max_shards;
    /// Takes back everything in these whole granules that was lent to the pool, and unmaps it.
    void take_back(unsigned pool_number, PageRun granules) noexcept {
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

    /// Reserves the addresses of guarded blocks, from the first page on, once. Returns their number
    /// of pages; 0 if the system refuses.
    PageCount reserve_guarded() noexcept {
        const std::lock_guard guard(mutex_);
        if (!set_up()) return 0;
        const Granules run{0, guarded_granules_};
        if (!uses_low_ || run.count == 0 || !window_.describe(run.first, run.end())) return 0;
        if (platform::reserve_at(address_of(0), run.count * granule_bytes) !=
            platform::ReservedAt::done)
            return 0;
        set_lender(run, for_guarded);
        return run.pages().count;
    }
    /// Returns the lowest address of all that are not kept for guarded and marked blocks; 1 if
    /// there is no window. In that case these addresses are never lent, because callers keep the
    /// result.
    std::uintptr_t first_unguarded() noexcept {
        const std::lock_guard guard(mutex_);
        if (!set_up()) {
            uses_low_ = false;
            return 1;
        }
        return reinterpret_cast<std::uintptr_t>(address_of(for_marked_.end * granule_pages));
    }

    /// Returns whether `p` lies in a run that is lent to this pool. Takes no lock. The result is
    /// exact unless the run is lent or taken back at the same time.
    bool is_lent_to(unsigned pool_number, const void* p) const noexcept {
        return pool_of(lender_at(p)) == pool_number + 1;
    }
    /// Returns the shard that a page was lent to. Takes no lock. REQUIRES: the page is lent, and
    /// stays so during the call.
    unsigned shard_of(PageNumber page) const noexcept {
        return window_.lenders()[page / granule_pages].load(std::memory_order_relaxed) >> pool_bits;
    }
    /// Returns whether a page lies in a run that is lent to this shard of a pool. Takes no lock.
    /// The result is exact for a caller that holds the shard's lock, because only that shard
    /// borrows and returns its runs.
    bool is_lent_to(unsigned pool_number, unsigned shard, PageNumber page) const noexcept {
        const std::uint32_t lender = (pool_number + 1) | shard << pool_bits;
        return window_.lenders()[page / granule_pages].load(std::memory_order_relaxed) == lender;
    }
    /// Returns the number of the pool that the page of `p` is lent to; `max_pools` if there is
    /// none. Takes no lock. The result is exact unless the run is lent or taken back at the same
    /// time.
    unsigned lender_of(const void* p) const noexcept {
        const std::uint32_t pool = pool_of(lender_at(p));
        return pool == 0 || pool > max_pools ? max_pools : pool - 1;
    }
    /// Returns whether `p` lies in a run that is lent to any pool. Takes no lock. The result is
    /// exact unless the run is lent or taken back at the same time.
    bool is_lent(const void* p) const noexcept {
        const std::uint32_t lender = lender_at(p);
        return lender != 0 && lender != foreign;
    }

    /// Returns the number of pages that a pool should request if it has `lent_bytes` already: as
    /// many as it has, at least 64 MiB and at most 1 GiB, and at most a sixteenth of the addresses
    /// that the process may still reserve.
    PageCount usual_loan(std::size_t lent_bytes) const noexcept {
        const std::size_t bytes = std::min(std::clamp(lent_bytes, smallest_loan, largest_loan),
                                           platform::available_address_space() / 16);
        return std::max(static_cast<PageCount>(bytes / granule_bytes), 1U) * granule_pages;
    }

    /// The largest alignment in pages for which a page whose number is a multiple of it also has an
    /// address that is.
    PageCount max_alignment() noexcept {
        const std::lock_guard guard(mutex_);
        return set_up() ? window_.alignment() : granule_pages;
    }
    /// The number of pages of the window.
    PageCount max_pages() noexcept {
        const std::lock_guard guard(mutex_);
        return window_.granules() * granule_pages;
    }

    /// What a pool does with the memory at addresses that it was lent.
    LentMemory& memory() noexcept { return memory_; }
    PageMap& map() noexcept { return window_.map(); }
    const PageMap& map() const noexcept { return window_.map(); }
    char* address_of(PageNumber page) const noexcept { return map().address_of(page); }

private:
    // The word of a granule: the pool that it is lent to, as its number + 1, and the shard; 0 if it
    // is free. Relaxed: see `is_lent_to`.
    static constexpr unsigned pool_bits = 16;
    static constexpr std::uint32_t for_guarded = 0xFFFD;
    static constexpr std::uint32_t foreign = 0xFFFE;  // not the heap's: others may map there
    static constexpr std::uint32_t retired = 0xFFFF;  // could not be returned to the system
    static std::uint32_t pool_of(std::uint32_t lender) noexcept {
        return lender & ((std::uint32_t{1} << pool_bits) - 1);
    }

public:
    /// Pool numbers are less than this.
    static constexpr unsigned max_pools = for_guarded - 1;

private:
    // A run of granules by number.
    struct Granules {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        std::uint32_t end() const noexcept { return first + count; }
        PageRun pages() const noexcept { return {first * granule_pages, count * granule_pages}; }
    };
    // A part of the window. No granule of it below `first_free` is free.
    struct Part {
        std::uint32_t first_free = 0;
        std::uint32_t end = 0;
    };
    bool set_up() noexcept {
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
    Granules find_free(const Part& part, std::uint32_t count,
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
    // Reserves a run from the system and makes the map describe it, but does not lend it yet.
    // Returns an empty run if the system refuses addresses for the run or memory for the map.
    Granules reserve(const Part& part, std::uint32_t count, std::uint32_t alignment) noexcept {
        for (;;) {
            const Granules run = find_free(part, count, alignment);
            if (run.count == 0) return {};
            switch (
                platform::reserve_at(address_of(run.pages().first), run.count * granule_bytes)) {
                case platform::ReservedAt::done:
                    if (!window_.describe(run.first, run.end())) {
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
    void note_free(std::uint32_t granule) noexcept {
        Part& part = granule < for_marked_.end ? for_marked_ : for_others_;
        part.first_free = std::min(part.first_free, granule);
    }
    // Marks foreign mappings in the run, so that they are not tried again: the first foreign
    // granule and, because a foreign mapping may be long, twice as many granules behind it each
    // time in a row, up to `limit`. Returns false if there is no memory for the marks.
    bool go_around(Granules taken, std::uint32_t limit) noexcept {
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
        if (!window_.describe(first, end)) return false;
        for (std::uint32_t granule = first; granule != end; ++granule) {
            if (lender_of(granule) == 0) set_lender({granule, 1}, foreign);
        }
        skipped_ = std::min(skipped_ * 2, window_.granules());
        return true;
    }
    // Removes all marks of foreign mappings, because those may have been unmapped. Returns false if
    // there were none.
    bool forget_foreign() noexcept {
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
    void set_lender(Granules run, std::uint32_t lender) noexcept {
        for (std::uint32_t granule = run.first; granule != run.end(); ++granule) {
            window_.lenders()[granule].store(lender, std::memory_order_relaxed);
        }
    }
    // Granules that the tables do not describe were never lent.
    std::uint32_t lender_of(std::uint32_t granule) const noexcept {
        return granule < window_.described()
                   ? window_.lenders()[granule].load(std::memory_order_relaxed)
                   : 0;
    }
    std::uint32_t lender_at(const void* p) const noexcept {
        const std::size_t pages = map().page_count();
        const std::size_t page = map().offset_of(p) / page_bytes;
        if (page >= pages) return 0;
        return window_.lenders()[page / granule_pages].load(std::memory_order_relaxed);
    }
    // Returns false if the addresses stay reserved. The system may refuse to unmap them if the
    // process has no room for more mappings.
    bool give_back(Granules run) noexcept {
        map().clear(run.pages());
        memory_.forget(run.pages());
        char* const begin = address_of(run.pages().first);
        const std::size_t bytes = run.count * granule_bytes;
        // Not `mark_returned`: closing all of the run first would take memory of AddressSanitizer
        // for addresses that were never committed.
        if (platform::memory_tool() == platform::MemoryTool::memcheck) {
            platform::mark_freed_within(begin, bytes);
        }
        if (bytes < max_opened) platform::mark_open(begin, bytes);
        if (platform::release(begin, bytes)) return true;
        (void)platform::decommit(begin, bytes);
        return false;
    }

    AddressWindow window_;
    LentMemory memory_{mutex_, window_.map()};
    std::uint32_t guarded_granules_ = 0;  // the first ones
    Part for_marked_;                     // behind them
    Part for_others_;                     // behind these
    bool uses_low_ = true;                // false after `first_unguarded` found no window
    // The number of granules that were skipped at the last foreign mapping.
    std::uint32_t skipped_ = 1;
};

/// Finds the usable bytes of the block at `p`, which lies in a pool whose blocks have fewer bytes
/// than their size class.
using ExactSize = std::size_t (*)(const void* p) noexcept;
inline constinit std::atomic<ExactSize> exact_size = nullptr;
inline constinit std::atomic<unsigned> exact_pool = ~0U;

/// Sets the function that `bytes_of_block_in_use` calls for blocks of the pool with this number.
inline void set_exact_size(unsigned pool_number, ExactSize function) noexcept {
    exact_size.store(function, std::memory_order_release);
    exact_pool.store(pool_number, std::memory_order_relaxed);
}

inline constinit base::NeverDestroyed<AddressSpace> the_address_space;

/// The address space of the process. It is set up by the first loan and never destroyed.
inline AddressSpace& address_space() noexcept {
    return the_address_space.get();
}

}  // namespace tensorpool::pages
