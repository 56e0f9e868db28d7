#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "pages/page_map.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_probes.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::pages {

/// The runs of pages whose memory was moved there from other addresses, in order of addresses and
/// without overlaps. To the system, each is a separate mapping that does not merge with its
/// neighbours, so their number is limited: with the gaps between them they add at most 1,000
/// mappings, of the 65,530 that Linux allows. (Since Linux 6.17 one run may consist of several
/// mappings, if parts of it requested huge pages or were locked.) If there are more runs, some are
/// not recorded, and the system may then refuse to move them. Not thread-safe.
class MovedRuns {
public:
    static constexpr unsigned max_runs = 500;

    /// Calls `function(PageRun)` for each piece of `run`, in order. A piece was moved there at
    /// once, or was never moved.
    template <class Function>
    void for_each_piece(PageRun run, Function function) const {
        PageNumber at = run.first;
        const PageNumber end = end_of(run);
        for (const PageRun& moved : overlapping(run)) {
            if (moved.first > at) function(PageRun{at, moved.first - at});
            at = std::max(at, moved.first);
            const PageNumber piece_end = std::min(end_of(moved), end);
            function(PageRun{at, piece_end - at});
            at = piece_end;
        }
        if (at != end) function(PageRun{at, end - at});
    }

    /// Calls `function(PageRun)` for each part of `run` that was moved there, in order.
    template <class Function>
    void for_each_moved(PageRun run, Function function) const {
        for (const PageRun& moved : overlapping(run)) {
            const PageNumber first = std::max(moved.first, run.first);
            function(PageRun{first, std::min(end_of(moved), end_of(run)) - first});
        }
    }

    unsigned pieces_of(PageRun run) const noexcept {
        unsigned pieces = 0;
        for_each_piece(run, [&](PageRun) { ++pieces; });
        return pieces;
    }

    bool has_room_for(unsigned pieces) const noexcept { return count_ + pieces <= max_runs; }
    unsigned count() const noexcept { return count_; }

    /// Records a run, unless there is no room for it. REQUIRES: it overlaps no recorded run.
    void add(PageRun run) noexcept {
        if (run.count == 0 || count_ == max_runs) return;
        PageRun* const at = overlapping(run).data();
        std::move_backward(at, end(), end() + 1);
        *at = run;
        ++count_;
    }

    /// Removes the pages of `run`. Parts of recorded runs outside of it stay recorded.
    void remove(PageRun run) noexcept {
        const std::span<PageRun> found = overlapping(run);
        if (found.empty()) return;
        const PageNumber first = found.front().first;
        const PageNumber last_end = end_of(found.back());
        PageRun before{first, run.first - std::min(run.first, first)};
        PageRun behind{end_of(run), last_end - std::min(last_end, end_of(run))};
        std::move(found.data() + found.size(), end(), found.data());
        count_ -= static_cast<unsigned>(found.size());
        if (before.count < behind.count) std::swap(before, behind);  // there may be room for one
        add(before);
        add(behind);
    }

private:
    static constexpr PageNumber end_of(PageRun run) noexcept { return run.first + run.count; }
    PageRun* end() noexcept { return runs_.data() + count_; }

    // The recorded runs that overlap `run`. If there are none, an empty range at their position.
    std::span<const PageRun> overlapping(PageRun run) const noexcept {
        const std::span<const PageRun> all(runs_.data(), count_);
        const auto first = std::ranges::upper_bound(all, run.first, {}, end_of);
        const auto last =
            std::ranges::lower_bound(first, all.end(), end_of(run), {}, &PageRun::first);
        return {first, last};
    }
    std::span<PageRun> overlapping(PageRun run) noexcept {
        const std::span<const PageRun> found = std::as_const(*this).overlapping(run);
        return {const_cast<PageRun*>(found.data()), found.size()};
    }

    std::array<PageRun, max_runs> runs_ = {};
    unsigned count_ = 0;
};

/// Returns the whole pages of the system in a run, which may be none.
inline PageRun whole_pages_in(PageRun run) noexcept {
    const std::size_t unit = platform::page_bytes() / page_bytes;
    const auto first = static_cast<PageNumber>(base::align_up(std::size_t{run.first}, unit));
    const auto end =
        static_cast<PageNumber>(base::align_down(std::size_t{run.first} + run.count, unit));
    return end > first ? PageRun{first, end - first} : PageRun{first, 0};
}

constexpr std::size_t bytes_of(PageRun run) noexcept {
    return run.count * page_bytes;
}

/// The memory at addresses that the address space has lent: commits, drops and moves it, for the
/// shard that borrowed them. Thread-safe for different pages.
class LentMemory {
public:
    /// `mutex` is the lock of the address space, which this class takes for what was moved.
    constexpr LentMemory(std::mutex& mutex, PageMap& map) noexcept : mutex_(mutex), map_(map) {}

    /// Makes the pages accessible. Returns false if the system refuses.
    bool commit(PageRun run) noexcept {
        const std::size_t unit = platform::page_bytes();
        const std::size_t from = base::align_down(run.first * page_bytes, unit);
        const std::size_t to =
            base::align_up((std::size_t{run.first} + run.count) * page_bytes, unit);
        return platform::commit(map_.address_of(0) + from, to - from);
    }
    /// Drops the pages, and those pages of the page map that describe nothing else. Afterwards the
    /// run's entries are zero except in its first and last granule. Returns false if the system
    /// refuses to drop the pages.
    bool decommit(PageRun run) noexcept {
        const PageRun whole = whole_pages_in(run);
        if (whole.count != 0) {
            char* const begin = map_.address_of(whole.first);
            if (!platform::decommit(begin, bytes_of(whole))) return false;
            platform::probe_unmapping(begin, bytes_of(whole));
            replace_moved(whole);
        }
        // The first and the last granule may contain entries of neighbours and of the run itself.
        const PageNumber first = run.first / granule_pages + 1;
        const PageNumber end = (run.first + run.count - 1) / granule_pages;
        if (end > first) (void)map_.drop({first * granule_pages, (end - first) * granule_pages});
        return true;
    }
    /// Lets the system take the whole pages of the run; see `platform::offer`.
    bool offer(PageRun run) noexcept {
        const PageRun whole = whole_pages_in(run);
        return whole.count == 0 || platform::offer(map_.address_of(whole.first), bytes_of(whole));
    }

    /// Returns whether the memory of these whole pages may be moved: the system supports it, and
    /// not too many runs were moved already.
    bool may_move(PageRun run) noexcept {
        const std::lock_guard guard(mutex_);
        if (moving_ == Ability::unknown) {
            moving_ = platform::can_move_memory() ? Ability::full : Ability::none;
        }
        return moving_ == Ability::full && moved_.has_room_for(moved_.pieces_of(run));
    }
    /// The result of a move. `none`: nothing was moved, and nothing has changed. `all`: everything
    /// was moved. `kept`: everything was moved, but some of the old pages could not be dropped.
    enum class Moved : std::uint8_t { none, kept, all };
    /// Moves the memory of committed pages with its content to an equally long run of committed
    /// pages, whose content is lost. If the system refuses after some pieces were moved, the rest
    /// is copied. REQUIRES: `may_move`, and both runs begin at the same offset in a page of the
    /// system.
    Moved move(PageRun from, PageNumber to) noexcept {
        const std::lock_guard guard(mutex_);
        std::array<PageRun, MovedRuns::max_runs + 1> pieces;
        unsigned count = 0;
        moved_.for_each_piece(from, [&](PageRun piece) { pieces[count++] = piece; });
        Moved result = Moved::none;
        for (unsigned i = 0; i != count; ++i) {
            const PageNumber target = to + (pieces[i].first - from.first);
            const std::size_t bytes = bytes_of(pieces[i]);
            char* const source = map_.address_of(pieces[i].first);
            moved_.remove({target, pieces[i].count});  // it becomes another mapping in either case
            if (platform::move_memory(map_.address_of(target), source, bytes)) {
                moved_.remove(pieces[i]);
                moved_.add({target, pieces[i].count});
                if (result == Moved::none) result = Moved::all;
                continue;
            }
            if (result == Moved::none) break;
            // For a memory tool, red zones and the target are not accessible.
            platform::mark_open(map_.address_of(target), bytes);
            platform::mark_open(source, bytes);
            platform::mark_defined(source, bytes);
            std::memcpy(map_.address_of(target), source, bytes);
            if (!platform::decommit(source, bytes)) result = Moved::kept;
        }
        moved_count_.store(moved_.count(), std::memory_order_relaxed);
        return result;
    }

    /// Forgets what was moved to addresses that are about to be unmapped. REQUIRES: the lock is
    /// held.
    void forget(PageRun run) noexcept {
        moved_.remove(run);
        moved_count_.store(moved_.count(), std::memory_order_relaxed);
    }

private:
    // Replaces mappings of memory that was moved into the run by ordinary ones, as far as the
    // system allows.
    void replace_moved(PageRun run) noexcept {
        if (moved_count_.load(std::memory_order_relaxed) == 0) [[likely]]
            return;
        const std::lock_guard guard(mutex_);
        std::array<PageRun, MovedRuns::max_runs> pieces;
        unsigned count = 0;
        moved_.for_each_moved(run, [&](PageRun piece) { pieces[count++] = piece; });
        for (unsigned i = 0; i != count; ++i) {
            if (platform::commit_anew(map_.address_of(pieces[i].first), bytes_of(pieces[i])))
                moved_.remove(pieces[i]);
        }
        moved_count_.store(moved_.count(), std::memory_order_relaxed);
    }

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
