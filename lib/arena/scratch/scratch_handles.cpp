// Handles that own blocks of a scratch (PooledAllocation). They end in reverse order within their
// scope, so the living ones are a stack.
//
// A block may lie where the block of a handle that outlived its memory lay. A serial number tells
// the two apart; the handle's BlockOwner keeps it in place of the number of releases.

#include <algorithm>
#include <iterator>

#include "arena/scratch/scratch_state.hpp"
#include "events/misuse.hpp"
#include "events/recorder_hooks.hpp"

namespace tensorpool {
namespace arena {

void ScratchHandles::push(const ScratchHandle& handle) {
    // The memory of these was released before their handles ended, which their ends will report.
    while (!handles_.empty() && handles_.back().used_before >= handle.used_before)
        handles_.pop_back();
    handles_.push_back(handle);
    handles_.back().serial = ++last_serial_;
}

ScratchHandles::Handles::const_reverse_iterator ScratchHandles::find(
    const HeldBlock& block) const noexcept {
    const std::uint64_t serial = block.owner.releases();
    return std::find_if(handles_.rbegin(), handles_.rend(), [&](const auto& handle) {
        return handle.block == block.address && handle.serial == serial;
    });
}

const char* ScratchHandles::misuse_of(const HeldBlock& block, std::uint64_t scope, std::size_t used,
                                      const ReleaseHistory& history) const noexcept {
    const auto found = find(block);
    if (found == handles_.rend()) {
        return "its memory was released before; expected it to end before its ScratchScope";
    }
    if (found->thread != std::this_thread::get_id()) {
        return "it belongs to another thread; expected it to end on its own";
    }
    if (found->scope != scope) {
        return "its ScratchScope is not the innermost one; expected it to end in its scope";
    }
    if (history.went_below(found->used_after, found->releases)) {
        return "its memory was released before; expected it to end before the release";
    }
    if (found != handles_.rbegin())
        return "a handle made after it has not ended; expected reverse order";
    if (found->used_after != used) {
        return "memory allocated after it is in use; expected it to be the last";
    }
    return nullptr;
}

}  // namespace arena

HeldBlock Scratch::hold(std::size_t bytes, std::size_t alignment) {
    return state_->hold(bytes, alignment);
}

namespace detail {

const SourceFunctions ScratchState::handle_functions = {
    .name = "scratch",
    .give_back =
        [](void* scratch, const HeldBlock& block) {
            static_cast<ScratchState*>(scratch)->end_handle(block);
        },
    .give_up =
        [](void* scratch, const HeldBlock& block) {
            static_cast<ScratchState*>(scratch)->handles_.forget(block);
        },
};

void ScratchState::release_to(std::size_t chunk, std::size_t used) noexcept {
    scratch_.raise_high();
    events::record_offset(TraceAction::scratch_release, number, used);
    go_back_to(chunk, used);
    add(record->words.releases, 1);
    history.add(used);
}

HeldBlock ScratchState::hold(std::size_t bytes, std::size_t alignment) {
    handles_.push({.used_before = scratch_.used(),
                   .chunk = scratch_.chunk_,
                   .scope = scratch_.scope(),
                   .releases = history.count(),
                   .thread = std::this_thread::get_id()});
    void* address = nullptr;
    try {
        address = scratch_.allocate(bytes, alignment);
    } catch (...) {
        handles_.pop();
        throw;
    }
    if (address == nullptr) {
        handles_.pop();
        return {};
    }
    arena::ScratchHandle& handle = handles_.last();
    handle.block = address;
    handle.used_after = scratch_.used();
    return {address, bytes, BlockOwner(link_, handle.serial, alignment)};
}

void ScratchState::end_handle(const HeldBlock& block) noexcept {
    const char* const misuse =
        handles_.misuse_of(block, scratch_.scope(), scratch_.used(), history);
    if (misuse != nullptr) {
        events::stop_at_misuse(
            {.kind = events::MisuseKind::scope_order,
             .pointer = block.address,
             .size = block.bytes,
             .owner = name()},
            "the end of a handle: scratch of %s: the handle owns the block of %zu B at %p, but %s",
            name(), block.bytes, block.address, misuse);
    }
    const arena::ScratchHandle handle = handles_.pop();
    release_to(handle.chunk, handle.used_before);
    if (scratch_.unsettled_ && scratch_.scope() == outside && scratch_.used() == 0) settle();
}

}  // namespace detail
}  // namespace tensorpool
