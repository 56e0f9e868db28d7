// Where blocks come from when the inline path has none. ArenaState tells what a claim is.

#include <algorithm>
#include <bit>
#include <mutex>
#include <stdexcept>
#include <string>

#include <tensorpool/arena.hpp>

#include "arena/arena_state.hpp"
#include "base/alignment.hpp"
#include "platform/platform.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool {

using base::Refusal;

namespace {

// The most that can be rounded up to any alignment and still be compared with an offset.
constexpr std::size_t most_bytes = std::size_t{1} << 47;

}  // namespace

void* Arena::allocate_slow(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: arena '" + name() + "': allocate: alignment is " +
                                    std::to_string(alignment) + " B; expected a power of two");
    }
    if (bytes == 0) return nullptr;
    Refusal refusal;
    void* const block = allocate_told(bytes, alignment, refusal);
    if (block == nullptr) state_->fail(bytes, refusal);
    return block;
}

void* Arena::allocate_told(std::size_t bytes, std::size_t alignment, Refusal& refusal) noexcept {
    statistics::look_for_recorder();
    void* const block = find_place(bytes, alignment, refusal);
    const auto action = block == nullptr ? TraceAction::refuse : TraceAction::arena_allocate;
    statistics::record(action, state_->id(), block, bytes, alignment);
    return block;
}

void* Arena::settle_or_throw(std::uint64_t claim, std::size_t bytes) {
    statistics::look_for_recorder();
    Refusal refusal;
    void* const block = settle(claim, bytes, refusal);
    const auto action = block == nullptr ? TraceAction::refuse : TraceAction::arena_allocate;
    statistics::record(action, state_->id(), block, bytes, granule_mask_ + 1);
    if (block == nullptr) state_->fail(bytes, refusal);
    return block;
}

void* Arena::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes == 0 || !std::has_single_bit(alignment)) return nullptr;
    Refusal refusal;
    return allocate_told(bytes, alignment, refusal);
}

// Claims nothing before it knows that there is room: for sizes and alignments that the inline path
// does not take, and for who must not throw.
void* Arena::find_place(std::size_t bytes, std::size_t alignment, Refusal& refusal) noexcept {
    state_->check_allocating_thread();
    const std::size_t most = std::min(state_->options().max_allocation, most_bytes);
    if (bytes > most || alignment > most_bytes) {
        refusal = bytes > most ? Refusal{"max_allocation", most}
                               : Refusal{"the largest alignment", most_bytes};
        if (bytes > most && bytes <= most_bytes) refusal.needed_limit = bytes;
        return state_->refuse(bytes, refusal);
    }
    for (;;) {
        const std::size_t end = end_.load(std::memory_order_acquire);
        std::uint64_t top = top_->load(std::memory_order_relaxed);
        const Place place = place_at(top & offset_mask, bytes, alignment);
        if (place.end <= end) {
            if (replace_top(top, (top & ~offset_mask) | place.end)) return base_ + place.begin;
        } else if (!make_room(place.end, top, refusal)) {
            return state_->refuse(bytes, refusal);
        }
    }
}

Arena::Place Arena::place_at(std::size_t top, std::size_t bytes,
                             std::size_t alignment) const noexcept {
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    const std::size_t size = base::align_up(bytes, granule_mask_ + 1);
    const std::size_t begin = base::align_up(base + top, alignment) - base;
    std::size_t end = begin + size;
    // Where a real arena will begin is known to 2 MiB: beyond, the worst is counted.
    if (state_->is_measuring() && alignment > platform::huge_page_bytes) {
        end = std::max(end, top + (alignment - granule_mask_ - 1) + size);
    }
    return {begin, end};
}

bool Arena::replace_top(std::uint64_t& seen, std::uint64_t top) noexcept {
    if (shared_) return top_->compare_exchange_weak(seen, top, std::memory_order_relaxed);
    top_->store(top, std::memory_order_relaxed);
    return true;
}

// Grows to `end`, for who claimed nothing and saw `seen`. False where that is refused; true where
// it is worth another look.
bool Arena::make_room(std::size_t end, std::uint64_t seen, Refusal& refusal) noexcept {
    Lock lock(state_->mutex);
    if (end <= end_.load(std::memory_order_relaxed)) return true;
    if (const std::size_t grown = grow_to(end, state_->options().growth, refusal); grown != 0) {
        lock.unlock();
        state_->tell(ArenaEvent::Kind::growth, grown);
        return true;
    }
    const std::uint64_t top = top_->load(std::memory_order_relaxed);
    if ((top & offset_mask) > end_.load(std::memory_order_relaxed)) {
        wait_for_change(lock);  // pending claims: they may be cancelled
        return true;
    }
    return top != seen;
}

void* Arena::settle(std::uint64_t claim, std::size_t bytes, Refusal& refusal) noexcept {
    const std::size_t begin = claim & offset_mask;
    const std::size_t end = begin + base::align_up(bytes, granule_mask_ + 1);
    Lock lock(state_->mutex);
    while (!state_->is_cancelled(claim)) {
        if (end <= end_.load(std::memory_order_relaxed)) return base_ + begin;
        if (const std::size_t grown = grow_to(end, state_->options().growth, refusal); grown != 0) {
            lock.unlock();
            state_->tell(ArenaEvent::Kind::growth, grown);
            return base_ + begin;
        }
        if (begin <= end_.load(std::memory_order_relaxed)) {
            top_->store(state_->cancel_from(begin), std::memory_order_relaxed);
            lock.unlock();
            return state_->refuse(bytes, refusal);
        }
        // Who comes first decides what becomes of all.
        wait_for_change(lock);
        lock.lock();
    }
    lock.unlock();
    return find_place(bytes, granule_mask_ + 1, refusal);
}

std::size_t Arena::grow_to(std::size_t end, const GrowthPolicy& growth, Refusal& refusal) noexcept {
    if (!state_->is_growing()) {
        refusal = {state_->is_measuring() ? "what can be measured" : "the buffer",
                   end_.load(std::memory_order_relaxed)};
        refusal.needed_limit = end;
        return 0;
    }
    const std::size_t grown = state_->memory.grow_to(end, growth, refusal);
    if (grown == 0) return 0;
    // Release: who sees the new end sees the memory committed.
    end_.store(state_->memory.end(), std::memory_order_release);
    state_->note(EntryKind::growth, grown);
    state_->announce_change();
    return grown;
}

// Gives the lock up.
void Arena::wait_for_change(Lock& lock) const noexcept {
    const std::uint32_t changes = state_->changes.load(std::memory_order_relaxed);
    lock.unlock();
    state_->changes.wait(changes, std::memory_order_relaxed);
}

}  // namespace tensorpool
