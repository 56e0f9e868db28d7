// Marks, releases, the memory that stays committed after a release, and handles.

#include "arena/arena_state.hpp"

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
    [[noreturn]] void refuse_ahead(std::size_t offset) const {
        refuse_mark("the mark at " + std::to_string(offset) +
                    " B lies ahead of the arena, which has " + std::to_string(arena_.used()) +
                    " B in use");
    }
    [[noreturn]] void refuse_mark(const std::string& what) const {
        throw std::invalid_argument("tensorpool: arena '" + arena_.name() +
                                    "': release_to: " + what);
    }
    // With checks, a mark that throws is also counted and reported.
    void note(events::MisuseKind kind, const char* what) const noexcept {
        if (!base::checks_calls(state_.options().checks)) return;
        events::note_misuse({.kind = kind, .owner = state_.name()}, "arena '%s': release_to: %s",
                            state_.name(), what);
    }
    void end_above(std::size_t offset) noexcept {
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
    void check_no_handle_above(std::size_t offset) const noexcept {
        if (state_.handles == nullptr) return;
        const auto block = state_.handles->first_above(offset);
        if (!block) return;
        void* const address = arena_.base_ + block->offset;
        events::stop_at_misuse(
            {.kind = events::MisuseKind::released_handle,
             .pointer = address,
             .size = block->bytes,
             .owner = state_.name()},
            "release_to or reset: arena '%s': a handle owns the block of %zu B at %p (offset "
            "%zu B), above the mark at %zu B; expected the handle to end before the release",
            state_.name(), block->bytes, address, block->offset, offset);
    }
    std::size_t give_back_above(std::size_t offset) noexcept {
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

private:
    void mark_freed_above(std::size_t offset) const noexcept {
        if (!platform::has_memory_tool() || state_.is_measuring()) return;
        const std::byte* const from = arena_.base_ + offset;
        const std::size_t bytes = arena_.used() - offset;
        state_.is_in_buffer() ? platform::mark_closed(from, bytes)
                              : platform::mark_freed_within(from, bytes);
    }
    std::uint64_t top_outside_forks() const noexcept {
        const std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
        if ((top & ArenaState::closed_by_fork) == 0) return top;
        const std::lock_guard lock(state_.mutex);
        return arena_.words_->used.load(std::memory_order_relaxed);
    }

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

/// The handles (PooledAllocation) that own blocks of one arena.
///
/// The end of a handle returns its block if the block lies at the top. Unlike a release, it may run
/// while other threads allocate, make marks, and end handles. Two numbers keep this apart from
/// releases. `phases` counts releases, which run alone, and outdates handles. `history` counts
/// these and the blocks that handles returned, and makes marks stale.
class ArenaHandles {
public:
    explicit ArenaHandles(Arena& arena) noexcept : arena_(arena), state_(*arena.state_) {}

    // One variable is returned, so it lies where the caller reads it, and the mark holds there.
    HeldBlock hold(std::size_t bytes, std::size_t alignment) {
        HeldBlock block;
        platform::mark_defined(&block, sizeof block);
        void* const address = arena_.allocate(bytes, alignment);
        if (address == nullptr) return block;
        block = {address, bytes, BlockOwner(state_.link, state_.phases.count(), alignment)};
        if (state_.handles == nullptr) return block;
        try {
            state_.handles->add({begin_of(block), end_of(block) - begin_of(block)});
        } catch (...) {
            end(block);
            throw;
        }
        return block;
    }
    void end(const HeldBlock& block) noexcept {
        state_.owner.check("the end of a handle");
        const std::size_t begin = begin_of(block);
        const std::size_t end = end_of(block);
        if (state_.phases.went_below(end, block.owner.releases())) return;
        give_up(block);
        if (!state_.is_measuring()) {
            platform::mark_freed({block.address, 0, end - begin, state_.is_in_buffer()});
        }
        if (state_.checked != nullptr) state_.checked->end(begin);
        if (state_.objects != nullptr) state_.objects->forget_within(begin, end);
        const std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
        // A fork that closes the top also makes it differ from the end.
        if ((top & ~ArenaState::closed_by_fork & Arena::offset_mask) == end) return_top(end, begin);
    }
    void give_up(const HeldBlock& block) noexcept {
        if (state_.handles != nullptr) state_.handles->remove(begin_of(block));
    }
    void* host_pointer(const HeldBlock& block) const noexcept {
        return state_.is_measuring() ? nullptr : block.address;
    }

    static SourceLink link_to(Arena& arena) noexcept { return {&functions, &arena}; }

private:
    static const SourceFunctions functions;

    std::size_t begin_of(const HeldBlock& block) const noexcept {
        return static_cast<std::size_t>(static_cast<std::byte*>(block.address) - arena_.base_);
    }
    std::size_t end_of(const HeldBlock& block) const noexcept {
        return begin_of(block) + base::align_up(block.bytes + state_.padding(), arena_.alignment());
    }
    // Lowers the top from the end of a block to its beginning. Returns false if the top is
    // elsewhere. REQUIRES: the caller holds the mutex of a shared arena, so no fork has closed the
    // top.
    bool lowered_top(std::size_t end, std::size_t begin) noexcept {
        std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
        if ((top & Arena::offset_mask) != end) return false;
        base::raise_to(state_.totals.peak_used_bytes, end);
        // Recorded first: other threads may allocate at `begin` as soon as the top is lowered.
        events::record_place(TraceAction::arena_release, state_.id(), arena_.base_, begin);
        const auto lowered = [&] { return (top & ~Arena::offset_mask) | begin; };
        if (!arena_.shared_) {
            arena_.words_->used.store(lowered(), std::memory_order_relaxed);
            return true;
        }
        // Release: a thread that marks the lowered top sees that a release is under way or done.
        while (!arena_.words_->used.compare_exchange_weak(top, lowered(), std::memory_order_release,
                                                          std::memory_order_relaxed)) {
            if ((top & Arena::offset_mask) != end) return false;
        }
        return true;
    }
    void return_top(std::size_t end, std::size_t begin) noexcept {
        events::look_for_recorder();
        {
            std::unique_lock lock(state_.mutex, std::defer_lock);
            if (arena_.shared_) lock.lock();
            arena::ReleaseHistory& history = state_.history;
            history.begin_release();
            if (lowered_top(end, begin)) {
                add(arena_.words_->releases, 1);
                history.finish_release(begin);
            } else {
                history.cancel_release();
            }
        }
        state_.fold_record();
    }

    Arena& arena_;
    ArenaState& state_;
};

const SourceFunctions ArenaHandles::functions = {
    .name = "arena",
    .give_back =
        [](void* arena, const HeldBlock& block) {
            ArenaHandles(*static_cast<Arena*>(arena)).end(block);
        },
    .give_up =
        [](void* arena, const HeldBlock& block) {
            ArenaHandles(*static_cast<Arena*>(arena)).give_up(block);
        },
    .host_pointer =
        [](void* arena, const HeldBlock& block) {
            return ArenaHandles(*static_cast<Arena*>(arena)).host_pointer(block);
        },
};

SourceLink link_to(Arena& arena) noexcept {
    return ArenaHandles::link_to(arena);
}

}  // namespace detail

HeldBlock Arena::hold(std::size_t bytes, std::size_t alignment) {
    return detail::ArenaHandles(*this).hold(bytes, alignment);
}

}  // namespace tensorpool
