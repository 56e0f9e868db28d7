#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "pages/moved_runs.hpp"
#include "pages/page_map.hpp"

namespace tensorpool::pages {

/// The memory at addresses that the address space has lent: commits, drops and moves it, for the
/// shard that borrowed them. Thread-safe for different pages.
class LentMemory {
public:
    /// `mutex` is the lock of the address space, which this class takes for what was moved.
    constexpr LentMemory(std::mutex& mutex, PageMap& map) noexcept : mutex_(mutex), map_(map) {}

    /// Makes the pages accessible. Returns false if the system refuses.
    bool commit(PageRun run) noexcept;
    /// Drops the pages, and those pages of the page map that describe nothing else. Afterwards the
    /// run's entries are zero except in its first and last granule. Returns false if the system
    /// refuses to drop the pages.
    bool decommit(PageRun run) noexcept;
    /// Lets the system take the whole pages of the run; see `platform::offer`.
    bool offer(PageRun run) noexcept;

    /// Returns whether the memory of these whole pages may be moved: the system supports it, and
    /// not too many runs were moved already.
    bool may_move(PageRun run) noexcept;
    /// The result of a move. `none`: nothing was moved, and nothing has changed. `all`: everything
    /// was moved. `kept`: everything was moved, but some of the old pages could not be dropped.
    enum class Moved : std::uint8_t { none, kept, all };
    /// Moves the memory of committed pages with its content to an equally long run of committed
    /// pages, whose content is lost. If the system refuses after some pieces were moved, the rest
    /// is copied. REQUIRES: `may_move`, and both runs begin at the same offset in a page of the
    /// system.
    Moved move(PageRun from, PageNumber to) noexcept;

    /// Forgets what was moved to addresses that are about to be unmapped. REQUIRES: the lock is
    /// held.
    void forget(PageRun run) noexcept;

private:
    void replace_moved(PageRun run) noexcept;

    std::mutex& mutex_;
    PageMap& map_;
    enum class Ability : std::uint8_t { unknown, none, full };
    // Guarded by mutex_:
    Ability moving_ = Ability::unknown;
    MovedRuns moved_;
    // The number of moved runs. Relaxed: the holder of a moved run has seen its own store.
    std::atomic<unsigned> moved_count_ = 0;
};

}  // namespace tensorpool::pages
