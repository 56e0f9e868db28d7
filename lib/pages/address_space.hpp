#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "pages/growing_table.hpp"
#include "pages/moved_runs.hpp"
#include "pages/page_map.hpp"

namespace tensorpool::pages {

/// The addresses that the process's pools may use, and their page map. It chooses a window of up to
/// 8 TiB, reserves nothing ahead, and lends runs of granules to pools by number, from the lowest
/// free address up, around whatever others have mapped there. Thread-safe.
class AddressSpace {
public:
    constexpr AddressSpace() noexcept = default;

    /// Lends at least `needed` pages that begin at a multiple of `alignment` pages (a power of
    /// two), `wanted` if there are so many in one piece, to a pool. They are not committed; their
    /// page map is. An empty run on failure.
    PageRun lend(unsigned pool_number, PageCount needed, PageCount wanted,
                 PageCount alignment = 1) noexcept;
    /// Takes back all that was lent to the pool in these granules, which are whole, and ends their
    /// mappings.
    void take_back(unsigned pool_number, PageRun granules) noexcept;

    /// Whether `p` lies in what was lent to this pool, or to any. No lock: it is exact for what is
    /// not lent or taken back at the same moment.
    bool is_lent_to(unsigned pool_number, const void* p) const noexcept;
    bool is_lent(const void* p) const noexcept;

    /// Pages that a pool should ask for which has so many: 64 MiB to begin with, twice as many each
    /// time up to 1 GiB, and at most a sixteenth of the addresses that the process may still take.
    PageCount usual_loan(std::size_t lent_bytes) const noexcept;

    /// Up to here, pages whose numbers are multiples of an alignment have addresses that are.
    PageCount max_alignment() noexcept;
    /// Pages that can be lent at all.
    PageCount max_pages() noexcept {
        const std::lock_guard guard(mutex_);
        return granules_ * granule_pages;
    }

    bool commit(PageRun run) noexcept;
    /// Drops the pages and, where whole pages of the page map describe nothing else, those too. The
    /// run's entries are zero then, but for its first and last granule.
    bool decommit(PageRun run) noexcept;

    /// Whether the memory of whole pages may move: the system can do it, and not too much of it was
    /// moved already.
    bool may_move(PageRun run) noexcept;
    /// What became of memory that was to move: `none` of it did, and it is as it was; all did; or,
    /// `kept`, all did, but where it was some old pages could not be dropped.
    enum class Moved : std::uint8_t { none, kept, all };
    /// Moves the memory of committed pages, with its content, to where as many are committed, whose
    /// content goes. Where the system stops amid it, the rest is copied.
    /// REQUIRES: `may_move`, and both begin as far from the beginning of a page of the system.
    Moved move(PageRun from, PageNumber to) noexcept;

    PageMap& map() noexcept { return map_; }
    const PageMap& map() const noexcept { return map_; }
    char* address_of(PageNumber page) const noexcept { return map_.address_of(page); }

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    // Which pool a granule is lent to: number + 1; 0 where it is free. Relaxed: see `is_lent_to`.
    using Lender = std::atomic<std::uint16_t>;
    static constexpr std::uint16_t foreign = 0xFFFE;  // others have mapped something there
    static constexpr std::uint16_t retired = 0xFFFF;  // it could not be given back to the system

public:
    /// Numbers of pools are less.
    static constexpr unsigned max_pools = foreign - 1;

private:
    // A run of granules by number.
    struct Granules {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        std::uint32_t end() const noexcept { return first + count; }
        PageRun pages() const noexcept { return {first * granule_pages, count * granule_pages}; }
    };
    bool set_up() noexcept;
    bool set_up_anywhere() noexcept;
    bool try_set_up(std::uintptr_t end, std::size_t bytes) noexcept;
    Granules find_free(std::uint32_t count, std::uint32_t alignment) const noexcept;
    Granules reserve(std::uint32_t count, std::uint32_t alignment) noexcept;
    bool grow_map(std::uint32_t granules) noexcept;
    bool go_around(Granules taken) noexcept;
    bool forgive_foreign() noexcept;
    void set_lender(Granules run, std::uint16_t lender) noexcept;
    // No granule from `mapped_` on was ever lent.
    std::uint16_t lender_of(std::uint32_t granule) const noexcept {
        return granule < mapped_ ? lenders_[granule].load(std::memory_order_relaxed) : 0;
    }
    std::uint16_t lender_at(const void* p) const noexcept;
    bool give_back(Granules run) noexcept;
    void forget_moved(PageRun run) noexcept;
    PageRun drop_entries(Granules run) noexcept;
    void clear_entries(Granules run) noexcept;

    std::mutex mutex_;
    PageMap map_;
    // They lie below the window and grow with what is lent. The first two are the map's.
    GrowingTable entries_;
    GrowingTable granule_words_;
    GrowingTable lenders_table_;
    Lender* lenders_ = nullptr;
    std::uint32_t granules_ = 0;
    PageCount alignment_ = granule_pages;
    // No granule below this one is free.
    std::uint32_t first_free_ = 0;
    // The tables describe so many; no granule from here on was ever lent.
    std::uint32_t mapped_ = 0;
    // How many granules were skipped where others have mapped something, the last time.
    std::uint32_t skipped_ = 1;

    enum class Ability : std::uint8_t { unknown, none, full };
    Ability moving_ = Ability::unknown;
    MovedRuns moved_;
    // How many there are. Relaxed: where a run was moved, its holder knows of it.
    std::atomic<unsigned> moved_count_ = 0;
};

/// The process's. Set up by the first loan, never destroyed.
AddressSpace& address_space() noexcept;

}  // namespace tensorpool::pages
