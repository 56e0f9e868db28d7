#include "planned/follower.hpp"

#include <algorithm>

namespace tensorpool::planned {
namespace {

bool fits(const PlannedBuffer& slot, std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= slot.bytes && alignment <= slot.max_alignment;
}

bool share_bytes(const PlannedBuffer& one, const PlannedBuffer& other) noexcept {
    return one.address < other.address + other.bytes && other.address < one.address + one.bytes;
}

}  // namespace

Follower::Follower(PlanTables& tables) : tables_(tables), seen_(tables.count) {
    stack_.reserve(tables.count);
}

// What the plan leaves to the pool has an alignment of its own there.
bool Follower::asks_for(std::uint32_t number, std::size_t bytes,
                        std::size_t alignment) const noexcept {
    if (number >= tables_.count) return false;
    const PlannedBuffer& slot = tables_.slots[number];
    const bool is_alike = slot.bytes - bytes < detail::plan_granule_bytes;
    return is_alike && (slot.address == nullptr || alignment <= slot.max_alignment);
}

// A request that is not met in its turn came in addition, changed its size, or stands behind others
// that were left out. Which of them, one request does not tell; those that follow do.
Follower::Turn Follower::find(const PlannedBuffer& next, std::size_t bytes,
                              std::size_t alignment) noexcept {
    const std::uint32_t present = number_of(next);
    if (asks_for(present, bytes, alignment)) return take(present);
    const std::uint32_t to = find_jump(present, bytes, alignment);
    if (to != nowhere) return jump(present, to);
    if (suspected_at_ == present || is_late(present, bytes, alignment)) {
        return {Answer::out_of_order, nullptr, &next};
    }
    return make_do(present, bytes, alignment);
}

// A jump ahead that is wrong costs every request that was jumped over. So it takes two requests in
// a row, or one after a request that may have grown; but what the plan leaves to the pool may well
// have been wanted only once. Where one alone speaks for it, it is suspected from now on.
std::uint32_t Follower::find_jump(std::uint32_t present, std::size_t bytes,
                                  std::size_t alignment) noexcept {
    const bool is_suspected = suspected_at_ == present;
    suspected_at_ = nowhere;
    if (is_suspected && asks_for(suspected_, bytes, alignment)) return suspected_;
    const std::uint32_t near = step_over_pools(missed_ == present ? present + 1 : present);
    if (asks_for(near, bytes, alignment)) return near;
    for (std::uint32_t slot = present + 1; slot <= present + max_ahead; ++slot) {
        if (!asks_for(slot, bytes, alignment)) continue;
        suspected_at_ = present;
        suspected_ = slot + 1;
        break;
    }
    return nowhere;
}

std::uint32_t Follower::step_over_pools(std::uint32_t slot) const noexcept {
    while (slot < tables_.count && tables_.slots[slot].address == nullptr) ++slot;
    return slot;
}

// Its turn went by without it, or another request got its slot.
bool Follower::is_late(std::uint32_t present, std::size_t bytes,
                       std::size_t alignment) const noexcept {
    const std::uint32_t first = present - std::min(present, max_ahead);
    for (std::uint32_t slot = first; slot < present; ++slot) {
        const BufferState state = tables_.states[slot].load(std::memory_order_relaxed);
        if (state != BufferState::passed && slot != lent_) continue;
        if (asks_for(slot, bytes, alignment)) return true;
    }
    return false;
}

Follower::Turn Follower::jump(std::uint32_t present, std::uint32_t to) noexcept {
    pass(present, to);
    return take(to);
}

// It is taken for the next one, changed.
Follower::Turn Follower::make_do(std::uint32_t present, std::size_t bytes,
                                 std::size_t alignment) noexcept {
    const std::uint32_t turn = step_over_pools(missed_ == present ? present + 1 : present);
    pass(present, turn);
    const PlannedBuffer& slot = tables_.slots[turn];
    if (turn == tables_.count) return {Answer::unknown, nullptr, &slot};
    if (!fits(slot, bytes, alignment)) {
        missed_ = turn;
        return {Answer::too_large, nullptr, &slot};
    }
    lent_ = turn;
    return take(turn);
}

// Its turn is over, whatever becomes of it.
Follower::Turn Follower::take(std::uint32_t number) noexcept {
    const PlannedBuffer& slot = tables_.slots[number];
    if (slot.address == nullptr) return {Answer::left_to_pool, nullptr, &slot + 1};
    if (is_clear(slot)) return {Answer::served, &slot, &slot + 1};
    pass(number, number + 1);
    return {Answer::still_in_use, nullptr, &slot + 1};
}

// A slot that is held stays so: see PlanTables. Acquire: what was done with its bytes came before
// what will be.
void Follower::pass(std::uint32_t from, std::uint32_t to) noexcept {
    for (std::uint32_t slot = from; slot < to; ++slot) {
        std::atomic<BufferState>& state = tables_.states[slot];
        if (state.load(std::memory_order_acquire) == BufferState::held) continue;
        state.store(BufferState::passed, std::memory_order_relaxed);
    }
}

// Rule 2 of PlanTables, through slots that were passed: for each byte of the slot, back to the last
// one that was not.
bool Follower::is_clear(const PlannedBuffer& slot) noexcept {
    if (++search_ == 0) {
        std::ranges::fill(seen_, 0);
        search_ = 1;
    }
    stack_.clear();
    push_predecessors(slot);
    while (!stack_.empty()) {
        const std::uint32_t before = stack_.back();
        stack_.pop_back();
        if (!look_at(before, slot)) return false;
    }
    return true;
}

// False when it is held, and has bytes of the slot.
bool Follower::look_at(std::uint32_t before, const PlannedBuffer& wanted) noexcept {
    const PlannedBuffer& slot = tables_.slots[before];
    if (!share_bytes(slot, wanted)) return true;
    const BufferState state = tables_.states[before].load(std::memory_order_acquire);
    if (state == BufferState::passed) push_predecessors(slot);
    return state != BufferState::held;
}

void Follower::push_predecessors(const PlannedBuffer& slot) noexcept {
    const std::uint32_t* const first = tables_.predecessors + slot.first_before;
    for (std::uint32_t i = 0; i < slot.before_count; ++i) {
        if (seen_[first[i]] == search_) continue;
        seen_[first[i]] = search_;
        stack_.push_back(first[i]);
    }
}

}  // namespace tensorpool::planned
