#include "pages/lent_memory.hpp"

#include <cstring>

#include "platform/platform.hpp"
#include "platform/tools/memory_probes.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::pages {
namespace {

constexpr std::size_t bytes_of(PageRun run) noexcept {
    return run.count * page_bytes;
}

/// Returns the whole pages of the system in a run, which may be none.
PageRun whole_pages_in(PageRun run) noexcept {
    const std::size_t unit = platform::page_bytes() / page_bytes;
    const auto first = static_cast<PageNumber>(base::align_up(std::size_t{run.first}, unit));
    const auto end =
        static_cast<PageNumber>(base::align_down(std::size_t{run.first} + run.count, unit));
    return end > first ? PageRun{first, end - first} : PageRun{first, 0};
}

}  // namespace

bool LentMemory::commit(PageRun run) noexcept {
    const std::size_t unit = platform::page_bytes();
    const std::size_t from = base::align_down(run.first * page_bytes, unit);
    const std::size_t to = base::align_up((std::size_t{run.first} + run.count) * page_bytes, unit);
    return platform::commit(map_.address_of(0) + from, to - from);
}

bool LentMemory::decommit(PageRun run) noexcept {
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

bool LentMemory::offer(PageRun run) noexcept {
    const PageRun whole = whole_pages_in(run);
    return whole.count == 0 || platform::offer(map_.address_of(whole.first), bytes_of(whole));
}

bool LentMemory::may_move(PageRun run) noexcept {
    const std::lock_guard guard(mutex_);
    if (moving_ == Ability::unknown) {
        moving_ = platform::can_move_memory() ? Ability::full : Ability::none;
    }
    return moving_ == Ability::full && moved_.has_room_for(moved_.pieces_of(run));
}

LentMemory::Moved LentMemory::move(PageRun from, PageNumber to) noexcept {
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

// Replaces mappings of memory that was moved into the run by ordinary ones, as far as the system
// allows.
void LentMemory::replace_moved(PageRun run) noexcept {
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

}  // namespace tensorpool::pages
