// Handles that own blocks of an arena (PooledAllocation).
//
// The end of a handle returns its block if the block lies at the top. Unlike a release, it may run
// while other threads allocate, make marks, and end handles. Two numbers keep this apart from
// releases. `phases` counts releases, which run alone, and outdates handles. `history` counts these
// and the blocks that handles returned, and makes marks stale.

#include <mutex>

#include "arena/arena_state.hpp"
#include "events/recorder_hooks.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {
namespace detail {

/// The handles of one arena.
class ArenaHandles {
public:
    explicit ArenaHandles(Arena& arena) noexcept : arena_(arena), state_(*arena.state_) {}

    HeldBlock hold(std::size_t bytes, std::size_t alignment);
    void end(const HeldBlock& block) noexcept;
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
    bool lowered_top(std::size_t end, std::size_t begin) noexcept;
    void return_top(std::size_t end, std::size_t begin) noexcept;

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

// One variable is returned, so it lies where the caller reads it, and the mark holds there.
HeldBlock ArenaHandles::hold(std::size_t bytes, std::size_t alignment) {
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

void ArenaHandles::end(const HeldBlock& block) noexcept {
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

void ArenaHandles::return_top(std::size_t end, std::size_t begin) noexcept {
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

// Lowers the top from the end of a block to its beginning. Returns false if the top is elsewhere.
// REQUIRES: the caller holds the mutex of a shared arena, so no fork has closed the top.
bool ArenaHandles::lowered_top(std::size_t end, std::size_t begin) noexcept {
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

SourceLink link_to(Arena& arena) noexcept {
    return ArenaHandles::link_to(arena);
}

}  // namespace detail

HeldBlock Arena::hold(std::size_t bytes, std::size_t alignment) {
    return detail::ArenaHandles(*this).hold(bytes, alignment);
}

}  // namespace tensorpool
