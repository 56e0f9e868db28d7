// Memory that moves within the address space.

#include <array>
#include <cstring>

#include "pages/address_space.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

// What is not committed keeps its access: `PageHeap::reserve` may be touching it.
void keep_access(char* address, std::size_t bytes) noexcept {
    if (platform::decommit_keeps_access()) (void)platform::commit(address, bytes);
}

}  // namespace

bool AddressSpace::may_move(PageRun run) noexcept {
    const std::lock_guard guard(mutex_);
    if (moving_ == Ability::unknown) {
        moving_ = platform::can_move_memory() ? Ability::full : Ability::none;
    }
    return moving_ == Ability::full && moved_.has_room_for(moved_.pieces_of(run));
}

bool AddressSpace::move(PageRun from, PageNumber to) noexcept {
    const std::lock_guard guard(mutex_);
    std::array<PageRun, MovedRuns::most> pieces;
    unsigned count = 0;
    moved_.for_each_piece(from, [&](PageRun piece) { pieces[count++] = piece; });
    moved_.remove(from);
    moved_.remove({to, from.count});
    bool dropped = true;
    for (unsigned i = 0; i != count; ++i) {
        const PageNumber place = to + (pieces[i].first - from.first);
        dropped = move_piece(pieces[i], place) && dropped;
    }
    moved_count_.store(moved_.count(), std::memory_order_relaxed);
    return dropped;
}

// False where its old pages were not dropped.
bool AddressSpace::move_piece(PageRun piece, PageNumber to) noexcept {
    const std::size_t bytes = piece.count * page_bytes;
    char* const source = address_of(piece.first);
    if (platform::move_memory(address_of(to), source, bytes)) {
        keep_access(source, bytes);
        moved_.add({to, piece.count});
        return true;
    }
    std::memcpy(address_of(to), source, bytes);
    return platform::decommit(source, bytes);
}

// Ends the mappings of memory that was moved into the run, as far as the system lets them go.
void AddressSpace::forget_moved(PageRun run) noexcept {
    if (moved_count_.load(std::memory_order_relaxed) == 0) [[likely]]
        return;
    const std::lock_guard guard(mutex_);
    std::array<PageRun, MovedRuns::most> pieces;
    unsigned count = 0;
    moved_.for_each_moved(run, [&](PageRun piece) { pieces[count++] = piece; });
    for (unsigned i = 0; i != count; ++i) {
        char* const begin = address_of(pieces[i].first);
        const std::size_t bytes = pieces[i].count * page_bytes;
        if (!platform::forget(begin, bytes)) continue;
        keep_access(begin, bytes);
        moved_.remove(pieces[i]);
    }
    moved_count_.store(moved_.count(), std::memory_order_relaxed);
}

}  // namespace tensorpool::pages
