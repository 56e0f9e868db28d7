// The slow path of allocation. ArenaState describes claims.

#include <algorithm>

#include "arena/arena_state.hpp"
#include "events/recorder_hooks.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {

using arena::Attempt;
using base::Refusal;

namespace {

// The largest size that can be rounded up to any alignment and still be compared with an offset.
constexpr std::size_t max_bytes = std::size_t{1} << 47;

}  // namespace

void* Arena::allocate_slow(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: arena '" + name() + "': allocate: alignment is " +
                                    std::to_string(alignment) + " B; expected a power of two");
    }
    if (bytes == 0) return nullptr;
    Attempt attempt;
    void* const block = detail::ArenaClaims(*this).allocate(bytes, alignment, attempt);
    if (block == nullptr) state_->fail(bytes, attempt);
    return block;
}

void* Arena::settle_or_throw(std::uint64_t claim, std::size_t bytes) {
    Attempt attempt;
    void* const block = detail::ArenaClaims(*this).settle(claim, bytes, attempt);
    if (block == nullptr) state_->fail(bytes, attempt);
    return block;
}

void* Arena::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes == 0 || !std::has_single_bit(alignment)) return nullptr;
    Attempt attempt;
    return detail::ArenaClaims(*this).allocate(bytes, alignment, attempt);
}

namespace detail {

void* ArenaClaims::allocate(std::size_t bytes, std::size_t alignment, Attempt& attempt) noexcept {
    events::look_for_recorder();
    return recorded(find_range(bytes, alignment, attempt), bytes, alignment);
}

void* ArenaClaims::settle(std::uint64_t claim, std::size_t bytes, Attempt& attempt) noexcept {
    void* const block = granted(claim, bytes, attempt);
    // Called only after the claim is settled: other threads wait for the outcome, and an answer to
    // a recorder takes time.
    events::look_for_recorder();
    return recorded(block, bytes, arena_.alignment());
}

void* ArenaClaims::recorded(void* block, std::size_t bytes, std::size_t alignment) const noexcept {
    if (block != nullptr) {
        count();
        state_.begin_checks(static_cast<std::byte*>(block), bytes);
    }
    if (block != nullptr && !state_.is_measuring()) {
        platform::mark_allocated(
            {block, bytes, base::align_up(bytes, arena_.alignment()), state_.is_in_buffer()});
    }
    const auto action = block == nullptr ? TraceAction::refuse : TraceAction::arena_allocate;
    events::record(action, state_.id(), block, bytes, alignment);
    return block;
}

void ArenaClaims::count() const noexcept {
    if (arena_.shared_) {
        count_allocation(*arena_.words_);
    } else {
        add(arena_.words_->allocations[0], 1);
    }
}

// Claims bytes only after checking that there is room. Used for sizes and alignments that the
// inline path does not take, and for try_allocate, which must not throw.
void* ArenaClaims::find_range(std::size_t bytes, std::size_t alignment, Attempt& attempt) noexcept {
    state_.owner.check_allocating();
    const std::size_t most = std::min(state_.options().max_allocation, max_bytes);
    if (bytes > most || alignment > max_bytes) {
        attempt.refusal = bytes > most ? Refusal{"max_allocation", most}
                                       : Refusal{"the largest alignment", max_bytes};
        if (bytes > most && bytes <= max_bytes) attempt.refusal.needed_limit = bytes;
        return state_.refuse(bytes, attempt);
    }
    for (;;) {
        const std::size_t end = arena_.end_.load(std::memory_order_acquire);
        std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
        const Range range = range_at(top & Arena::offset_mask, bytes, alignment);
        if (range.end <= end) {
            if (replace_top(top, (top & ~Arena::offset_mask) | range.end))
                return arena_.base_ + range.begin;
        } else if (!make_room(range.end, top, attempt) && !attempt.may_retry()) {
            return state_.refuse(bytes, attempt);
        }
    }
}

ArenaClaims::Range ArenaClaims::range_at(std::size_t top, std::size_t bytes,
                                         std::size_t alignment) const noexcept {
    const auto base = reinterpret_cast<std::uintptr_t>(arena_.base_);
    const std::size_t size = base::align_up(bytes + state_.padding(), arena_.alignment());
    const std::size_t begin = base::align_up(base + top, alignment) - base;
    std::size_t end = begin + size;
    // The base of a real arena is known to be a multiple of 2 MiB. For larger alignments the worst
    // case is counted.
    if (state_.is_measuring() && alignment > platform::huge_page_bytes) {
        end = std::max(end, top + (alignment - arena_.alignment()) + size);
    }
    return {begin, end};
}

bool ArenaClaims::replace_top(std::uint64_t& seen, std::uint64_t top) noexcept {
    // Acquire: pairs with the end of a handle that returned the bytes above `seen`.
    if (arena_.shared_)
        return arena_.words_->used.compare_exchange_weak(seen, top, std::memory_order_acquire);
    arena_.words_->used.store(top, std::memory_order_relaxed);
    return true;
}

// Grows to `end` for a caller that claimed nothing and read the top as `seen`. Returns false if
// that is refused, true if the caller should look again.
bool ArenaClaims::make_room(std::size_t end, std::uint64_t seen, Attempt& attempt) noexcept {
    std::unique_lock lock(state_.mutex);
    if (end <= arena_.end_.load(std::memory_order_relaxed)) return true;
    if (const Growth growth = grow_to(end, state_.options().growth, attempt); growth.is_met) {
        lock.unlock();
        notify(growth);
        return true;
    }
    const std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
    if ((top & Arena::offset_mask) > arena_.end_.load(std::memory_order_relaxed)) {
        state_.changes.wait(lock);  // pending claims: they may be cancelled
        return true;
    }
    return top != seen;
}

void* ArenaClaims::granted(std::uint64_t claim, std::size_t bytes, Attempt& attempt) noexcept {
    const std::size_t begin = claim & Arena::offset_mask;
    const std::size_t end = begin + base::align_up(bytes, arena_.alignment());
    std::unique_lock lock(state_.mutex);
    while (!state_.is_cancelled(claim)) {
        if (end <= arena_.end_.load(std::memory_order_relaxed)) return arena_.base_ + begin;
        if (const Growth growth = grow_to(end, state_.options().growth, attempt); growth.is_met) {
            lock.unlock();
            notify(growth);
            return arena_.base_ + begin;
        }
        if (begin <= arena_.end_.load(std::memory_order_relaxed)) {
            // Release: passes on what the claim acquired, since a plain store ends the sequence of
            // exchanges that began with the end of a handle.
            arena_.words_->used.store(state_.cancel_from(begin), std::memory_order_release);
            lock.unlock();
            // Holders are asked without the mutex, so other threads settle their claims meanwhile.
            if (attempt.may_retry()) return find_range(bytes, arena_.alignment(), attempt);
            return state_.refuse(bytes, attempt);
        }
        // The first pending claim decides the outcome of all of them.
        state_.changes.wait(lock);
        lock.lock();
    }
    lock.unlock();
    return find_range(bytes, arena_.alignment(), attempt);
}

ArenaClaims::Growth ArenaClaims::grow_to(std::size_t end, const GrowthPolicy& growth,
                                         Attempt& attempt) noexcept {
    if (!state_.is_growing()) {
        attempt.refusal = {state_.is_measuring() ? "the measuring range" : "the buffer",
                           arena_.end_.load(std::memory_order_relaxed)};
        attempt.refusal.needed_limit = end;
        return {};
    }
    arena::ArenaMemory& memory = state_.memory;
    const bool begins = !memory.is_charged();
    if (!memory.charge(attempt)) return {};
    const std::size_t before = memory.end();
    const std::size_t grown = end <= before ? 0 : memory.grow_to(end, growth, attempt);
    platform::mark_closed(memory.base() + before, memory.end() - before);
    // Release: a thread that reads the new end sees the memory committed.
    arena_.end_.store(memory.end(), std::memory_order_release);
    if (grown != 0) state_.note(EntryKind::growth, grown);
    if (grown != 0 || begins) state_.changes.announce();
    return {end <= memory.end(), grown};
}

}  // namespace detail

}  // namespace tensorpool
