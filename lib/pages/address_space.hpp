#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "pages/moved_runs.hpp"
#include "pages/page_map.hpp"

namespace tensorpool::pages {

/// The one reservation of the process and its page map. Lends runs of granules to pools by number
/// and takes them back when a pool dies. Thread-safe.
class AddressSpace {
public:
    constexpr AddressSpace() noexcept = default;

    /// Lends at least `needed` pages, `wanted` if there are so many in one piece, to a pool. They
    /// are not committed; their page map is. An empty run on failure.
    PageRun lend(unsigned pool_number, PageCount needed, PageCount wanted) noexcept;
    /// Takes back all that was lent to the pool, and drops its pages and their entries.
    void take_back(unsigned pool_number) noexcept;

    /// Whether `p` lies in what was lent to this pool.
    bool is_lent_to(unsigned pool_number, const void* p) noexcept;

    /// Pages that one pool should ask for at a time: a thousandth of all, 1 GiB at most.
    PageCount usual_loan() noexcept;

    /// Up to here, pages whose numbers are multiples of an alignment have addresses that are.
    PageCount most_alignment() noexcept;

    bool commit(PageRun run) noexcept;
    /// Drops the pages and, where whole pages of the page map describe nothing else, those too. The
    /// run's entries are zero then, but for its first and last granule.
    bool decommit(PageRun run) noexcept;

    /// Whether the memory of whole pages may move: the system can do it, and not too much of it was
    /// moved already.
    bool may_move(PageRun run) noexcept;
    /// Moves the memory of committed pages, with its content, to where as many are committed, whose
    /// content goes. What the system does not move is copied. Where it was, nothing is committed
    /// then; false where its old pages could not all be dropped.
    /// REQUIRES: `may_move`, and both begin as far from the beginning of a page of the system.
    bool move(PageRun from, PageNumber to) noexcept;

    PageMap& map() noexcept { return map_; }
    const PageMap& map() const noexcept { return map_; }
    char* address_of(PageNumber page) const noexcept { return map_.address_of(page); }

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    // Which pool a granule is lent to: number + 1; 0 where it is free.
    using Lender = std::uint16_t;
    static constexpr Lender retired = 0xFFFF;

    bool set_up() noexcept;
    bool try_set_up(std::size_t bytes) noexcept;
    PageRun find_free(PageCount granules) const noexcept;
    bool move_piece(PageRun piece, PageNumber to) noexcept;
    void forget_moved(PageRun run) noexcept;
    // True when all entries of these granules are zero now.
    bool drop_entries(std::uint32_t first_granule, std::uint32_t count) noexcept;
    void clear_entries(std::uint32_t first_granule, std::uint32_t count) noexcept;

    std::mutex mutex_;
    PageMap map_;
    Lender* lenders_ = nullptr;
    std::uint32_t granules_ = 0;
    PageCount alignment_ = granule_pages;
    // No granule below this one is free.
    std::uint32_t first_free_ = 0;

    enum class Ability : std::uint8_t { unknown, none, full };
    Ability moving_ = Ability::unknown;
    MovedRuns moved_;
    // How many there are. Relaxed: where a run was moved, its holder knows of it.
    std::atomic<unsigned> moved_count_ = 0;
};

/// The process's. Set up by the first loan, never destroyed.
AddressSpace& address_space() noexcept;

}  // namespace tensorpool::pages
