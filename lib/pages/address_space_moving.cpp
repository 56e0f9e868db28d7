// Moving memory within the address space.

#include <array>
#include <cstring>

#include "pages/address_space.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::pages {
bool AddressSpace::may_move(PageRun run) noexcept {
    const std::lock_guard guard(mutex_);
    if (moving_ == Ability::unknown) {
        moving_ = platform::can_move_memory() ? Ability::full : Ability::none;
    }
    return moving_ == Ability::full && moved_.has_room_for(moved_.pieces_of(run));
}

AddressSpace::Moved AddressSpace::move(PageRun from, PageNumber to) noexcept {
    const std::lock_guard guard(mutex_);
    std::array<PageRun, MovedRuns::max_runs + 1> pieces;
    unsigned count = 0;
    moved_.for_each_piece(from, [&](PageRun piece) { pieces[count++] = piece; });
    Moved result = Moved::none;
    for (unsigned i = 0; i != count; ++i) {
        const PageNumber target = to + (pieces[i].first - from.first);
        const std::size_t bytes = pieces[i].count * page_bytes;
        char* const source = address_of(pieces[i].first);
        moved_.remove({target, pieces[i].count});  // it becomes another mapping in either case
        if (platform::move_memory(address_of(target), source, bytes)) {
            moved_.remove(pieces[i]);
            moved_.add({target, pieces[i].count});
            if (result == Moved::none) result = Moved::all;
            continue;
        }
        if (result == Moved::none) break;
        // For a memory tool, red zones and the target are not accessible.
        platform::mark_open(address_of(target), bytes);
        platform::mark_open(source, bytes);
        platform::mark_defined(source, bytes);
        std::memcpy(address_of(target), source, bytes);
        if (!platform::decommit(source, bytes)) result = Moved::kept;
    }
    moved_count_.store(moved_.count(), std::memory_order_relaxed);
    return result;
}

// Replaces mappings of memory that was moved into the run by ordinary ones, as far as the system
// allows.
void AddressSpace::forget_moved(PageRun run) noexcept {
    if (moved_count_.load(std::memory_order_relaxed) == 0) [[likely]]
        return;
    const std::lock_guard guard(mutex_);
    std::array<PageRun, MovedRuns::max_runs> pieces;
    unsigned count = 0;
    moved_.for_each_moved(run, [&](PageRun piece) { pieces[count++] = piece; });
    for (unsigned i = 0; i != count; ++i) {
        const std::size_t bytes = pieces[i].count * page_bytes;
        if (platform::commit_anew(address_of(pieces[i].first), bytes)) moved_.remove(pieces[i]);
    }
    moved_count_.store(moved_.count(), std::memory_order_relaxed);
}

}  // namespace tensorpool::pages
