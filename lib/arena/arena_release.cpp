// Marks, releases, and the memory that stays committed after a release.

#include <algorithm>

#include "arena/arena_state.hpp"
#include "events/misuse.hpp"
#include "events/recorder_hooks.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {

namespace detail {

/// Takes memory back from an arena: ends the allocations above an offset, and gives free memory
/// beyond `retain` back to the system.
class ArenaReleases {
public:
    explicit ArenaReleases(Arena& arena) noexcept : arena_(arena), state_(*arena.state_) {}

    bool is_ahead(std::size_t offset) const noexcept { return offset > arena_.used(); }
    bool is_stale(const Arena::Mark& mark) const noexcept {
        return state_.history.went_below(mark.offset_, mark.releases_);
    }
    [[noreturn]] void refuse_ahead(std::size_t offset) const;
    [[noreturn]] void refuse_mark(const std::string& what) const;
    void note(events::MisuseKind kind, const char* what) const noexcept;
    void end_above(std::size_t offset) noexcept;
    void check_no_handle_above(std::size_t offset) const noexcept;
    std::size_t give_back_above(std::size_t offset) noexcept;

private:
    void mark_freed_above(std::size_t offset) const noexcept;
    std::uint64_t top_outside_forks() const noexcept;

    Arena& arena_;
    ArenaState& state_;
};

}  // namespace detail

using detail::ArenaReleases;

Arena::Mark Arena::mark() const noexcept {
    Mark mark;
    mark.arena_ = state_->id();
    // A handle of another thread may return the block at the top between the two reads. So the
    // number of releases must be the one that belongs to the position.
    const arena::ReleaseHistory& history = state_->history;
    std::uint64_t sequence = history.sequence();
    for (;;) {
        if (arena::ReleaseHistory::is_release_under_way(sequence)) {
            const std::lock_guard wait(state_->mutex);
            sequence = history.sequence();
        }
        mark.offset_ = settled_top();
        const std::uint64_t seen = std::exchange(sequence, history.sequence());
        if (seen == sequence) break;
    }
    mark.releases_ = sequence / 2;
    events::record_place(TraceAction::arena_mark, state_->id(), base_, mark.offset_);
    return mark;
}

std::size_t Arena::settled_top() const noexcept {
    // The end is read first, as in an allocation: everything below it has been granted. Acquire for
    // the top: pairs with a handle that lowers it, so that its release is seen.
    std::size_t end = end_.load(std::memory_order_acquire);
    std::size_t top = words_->used.load(std::memory_order_acquire) & offset_mask;
    while (top > end) {
        // There are pending claims. A position between blocks is known once they are settled.
        std::unique_lock lock(state_->mutex);
        end = end_.load(std::memory_order_relaxed);
        top = words_->used.load(std::memory_order_relaxed) & offset_mask;
        if (top > end) state_->changes.wait(lock);
    }
    return top;
}

void Arena::release_to(Mark mark) {
    ArenaReleases releases(*this);
    if (mark.arena_ != state_->id()) {
        const char* const what =
            mark.arena_ == 0 ? "the mark is empty" : "the mark belongs to another arena";
        releases.note(events::MisuseKind::foreign_mark, what);
        releases.refuse_mark(what);
    }
    if (releases.is_ahead(mark.offset_) || releases.is_stale(mark)) {
        releases.note(events::MisuseKind::stale_mark,
                      "the mark is stale: a release went below it since");
        if (releases.is_ahead(mark.offset_)) releases.refuse_ahead(mark.offset_);
        releases.refuse_mark("the mark at " + std::to_string(mark.offset_) +
                             " B is stale: a release went below it since");
    }
    releases.end_above(mark.offset_);
}

void Arena::release_to(std::size_t offset) {
    ArenaReleases releases(*this);
    if (releases.is_ahead(offset)) releases.refuse_ahead(offset);
    if (!base::is_aligned(offset, alignment())) {
        releases.refuse_mark("the mark at " + std::to_string(offset) +
                             " B lies within a block: expected a multiple of " +
                             std::to_string(alignment()) + " B, as used() gives");
    }
    releases.end_above(offset);
}

void Arena::reset() noexcept {
    ArenaReleases(*this).end_above(0);
}

std::size_t Arena::trim() noexcept {
    state_->owner.check("trim");
    return ArenaReleases(*this).give_back_above(used());
}

void Arena::reserve(std::size_t bytes) {
    state_->owner.check("reserve");
    if (state_->is_measuring()) return;
    arena::Attempt attempt;
    detail::ArenaClaims claims(*this);
    using Growth = detail::ArenaClaims::Growth;
    Growth growth;
    do {
        const std::lock_guard lock(state_->mutex);
        growth = bytes <= end_.load(std::memory_order_relaxed)
                     ? Growth{.is_met = true}
                     : claims.grow_to(bytes, arena::no_surplus, attempt);
    } while (!growth.is_met && attempt.may_retry());
    if (!growth.is_met) {
        state_->refuse(bytes, attempt);
        state_->fail(bytes, attempt);
    }
    claims.notify(growth);
    if (state_->is_growing()) state_->memory.touch(bytes);
}

ArenaScope::~ArenaScope() {
    ArenaReleases releases(*arena_);
    if (!releases.is_stale(mark_)) releases.end_above(mark_.offset());
}

namespace detail {

void ArenaReleases::refuse_ahead(std::size_t offset) const {
    refuse_mark("the mark at " + std::to_string(offset) + " B lies ahead of the arena, which has " +
                std::to_string(arena_.used()) + " B in use");
}

// With checks, a mark that throws is also counted and reported.
void ArenaReleases::note(events::MisuseKind kind, const char* what) const noexcept {
    if (!base::checks_calls(state_.options().checks)) return;
    events::note_misuse({.kind = kind, .owner = state_.name()}, "arena '%s': release_to: %s",
                        state_.name(), what);
}

void ArenaReleases::refuse_mark(const std::string& what) const {
    throw std::invalid_argument("tensorpool: arena '" + arena_.name() + "': release_to: " + what);
}

std::uint64_t ArenaReleases::top_outside_forks() const noexcept {
    const std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
    if ((top & ArenaState::closed_by_fork) == 0) return top;
    const std::lock_guard lock(state_.mutex);
    return arena_.words_->used.load(std::memory_order_relaxed);
}

void ArenaReleases::check_no_handle_above(std::size_t offset) const noexcept {
    if (state_.handles == nullptr) return;
    const auto block = state_.handles->first_above(offset);
    if (!block) return;
    void* const address = arena_.base_ + block->offset;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::released_handle,
         .pointer = address,
         .size = block->bytes,
         .owner = state_.name()},
        "release_to or reset: arena '%s': a handle owns the block of %zu B at %p (offset %zu B), "
        "above the mark at %zu B; expected the handle to end before the release",
        state_.name(), block->bytes, address, block->offset, offset);
}

void ArenaReleases::mark_freed_above(std::size_t offset) const noexcept {
    if (!platform::has_memory_tool() || state_.is_measuring()) return;
    const std::byte* const from = arena_.base_ + offset;
    const std::size_t bytes = arena_.used() - offset;
    state_.is_in_buffer() ? platform::mark_closed(from, bytes)
                          : platform::mark_freed_within(from, bytes);
}

void ArenaReleases::end_above(std::size_t offset) noexcept {
    state_.owner.check("release_to or reset");
    check_no_handle_above(offset);
    events::look_for_recorder();
    events::record_place(TraceAction::arena_release, state_.id(), arena_.base_, offset);
    base::raise_to(state_.totals.peak_used_bytes, arena_.used());
    mark_freed_above(offset);
    if (state_.checked != nullptr) state_.checked->end_from(offset);
    std::uint64_t top;
    do {
        top = top_outside_forks();
    } while (!ArenaClaims(arena_).replace_top(top, (top & ~Arena::offset_mask) | offset));
    add(arena_.words_->releases, 1);
    state_.history.add(offset);
    state_.phases.add(offset);
    if (state_.objects != nullptr) state_.objects->forget_above(offset);
    if (state_.capacity() > state_.options().retain) {
        give_back_above(std::max(offset, state_.options().retain));
    }
    state_.fold_record();
}

std::size_t ArenaReleases::give_back_above(std::size_t offset) noexcept {
    if (!state_.is_growing()) return 0;
    std::size_t bytes = 0;
    {
        const std::lock_guard lock(state_.mutex);
        bytes = state_.memory.give_back_above(offset);
        arena_.end_.store(state_.memory.end(), std::memory_order_relaxed);
        if (bytes != 0) state_.note(EntryKind::give_back, bytes);
    }
    if (bytes != 0) state_.notify(ArenaEvent::Kind::give_back, bytes);
    return bytes;
}

}  // namespace detail

}  // namespace tensorpool
