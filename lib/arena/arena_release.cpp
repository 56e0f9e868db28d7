// How memory goes back: marks, releases, and what stays committed.

#include <algorithm>
#include <mutex>
#include <string>

#include <tensorpool/arena.hpp>

#include "arena/arena_state.hpp"
#include "base/alignment.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool {

using base::Refusal;

Arena::Mark Arena::mark() const noexcept {
    Mark mark;
    mark.arena_ = state_->id();
    mark.releases_ = state_->history.count();
    // The end is read first, as for an allocation: what lies below it has been granted.
    std::size_t end = end_.load(std::memory_order_acquire);
    mark.offset_ = top_->load(std::memory_order_relaxed) & offset_mask;
    while (mark.offset_ > end) {
        // Amid claims that are pending: a place between blocks is known when they are settled.
        Lock lock(state_->mutex);
        end = end_.load(std::memory_order_relaxed);
        mark.offset_ = top_->load(std::memory_order_relaxed) & offset_mask;
        if (mark.offset_ > end) wait_for_change(lock);
    }
    statistics::record_place(TraceAction::arena_mark, state_->id(), base_, mark.offset_);
    return mark;
}

void Arena::release_to(Mark mark) {
    if (mark.arena_ != state_->id()) {
        state_->refuse_mark(mark.arena_ == 0 ? "the mark is of no arena"
                                             : "the mark is of another arena");
    }
    check_not_ahead(mark.offset_);
    if (is_stale(mark)) {
        state_->refuse_mark("the mark at " + std::to_string(mark.offset_) +
                            " B is stale: a release went below it since");
    }
    end_above(mark.offset_);
}

void Arena::release_to(std::size_t offset) {
    check_not_ahead(offset);
    if (!base::is_aligned(offset, alignment())) {
        state_->refuse_mark("the mark at " + std::to_string(offset) +
                            " B lies within a block: expected a multiple of " +
                            std::to_string(alignment()) + " B, as used() gives");
    }
    end_above(offset);
}

void Arena::reset() noexcept {
    end_above(0);
}

void Arena::check_not_ahead(std::size_t offset) const {
    const std::size_t in_use = used();
    if (offset <= in_use) return;
    state_->refuse_mark("the mark at " + std::to_string(offset) +
                        " B lies ahead of the arena, which has " + std::to_string(in_use) +
                        " B in use");
}

bool Arena::is_stale(Mark mark) const noexcept {
    return state_->history.went_below(mark.offset_, mark.releases_);
}

std::uint64_t Arena::top_outside_forks() const noexcept {
    const std::uint64_t top = top_->load(std::memory_order_relaxed);
    if ((top & closed_by_fork) == 0) return top;
    const std::lock_guard lock(state_->mutex);
    return top_->load(std::memory_order_relaxed);
}

void Arena::end_above(std::size_t offset) noexcept {
    state_->check_thread("release_to or reset");
    statistics::look_for_recorder();
    statistics::record_place(TraceAction::arena_release, state_->id(), base_, offset);
    base::raise_to(state_->totals.peak_used_bytes, used());
    std::uint64_t top;
    do {
        top = top_outside_forks();
    } while (!replace_top(top, (top & ~offset_mask) | offset));
    state_->history.add(offset);
    if (state_->objects != nullptr) state_->objects->forget_above(offset);
    if (state_->capacity() > state_->options().retain) {
        give_back_above(std::max(offset, state_->options().retain));
    }
    state_->fold_record();
}

std::size_t Arena::trim() noexcept {
    state_->check_thread("trim");
    return give_back_above(used());
}

std::size_t Arena::give_back_above(std::size_t offset) noexcept {
    if (!state_->is_growing()) return 0;
    std::size_t bytes = 0;
    {
        const std::lock_guard lock(state_->mutex);
        bytes = state_->memory.give_back_above(offset);
        end_.store(state_->memory.end(), std::memory_order_relaxed);
        if (bytes != 0) state_->note(EntryKind::give_back, bytes);
    }
    if (bytes != 0) state_->tell(ArenaEvent::Kind::give_back, bytes);
    return bytes;
}

void Arena::reserve(std::size_t bytes) {
    state_->check_thread("reserve");
    if (state_->is_measuring()) return;
    Refusal refusal;
    std::size_t grown = 0;
    bool met = true;
    {
        const std::lock_guard lock(state_->mutex);
        if (bytes > end_.load(std::memory_order_relaxed)) {
            grown = grow_to(bytes, arena::no_surplus, refusal);
            met = grown != 0;
        }
    }
    if (!met) {
        state_->refuse(bytes, refusal);
        state_->fail(bytes, refusal);
    }
    if (grown != 0) state_->tell(ArenaEvent::Kind::growth, grown);
    if (state_->is_growing()) state_->memory.touch(bytes);
}

ArenaScope::~ArenaScope() {
    if (!arena_->is_stale(mark_)) arena_->end_above(mark_.offset());
}

}  // namespace tensorpool
