#pragma once

#include <algorithm>
#include <vector>

#include <tensorpool/detail/plan_tables.hpp>

namespace tensorpool::planned {

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanTables;

inline bool fits(const PlannedBuffer& buffer, std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= buffer.bytes && alignment <= buffer.max_alignment;
}

inline bool share_bytes(const PlannedBuffer& one, const PlannedBuffer& other) noexcept {
    return one.address < other.address + other.bytes && other.address < one.address + one.bytes;
}

/// Finds the position of an iteration in the plan's sequence when a request is not the expected
/// one. Used by the arena's owner only.
class Follower {
public:
    enum class Answer {
        served,        ///< the buffer may be handed out
        left_to_pool,  ///< the plan leaves this request to the pool
        too_large,     ///< larger than its buffer, or with a larger alignment
        out_of_order,  ///< its turn is over or still to come
        unknown,       ///< the sequence has ended
        still_in_use,  ///< bytes of its buffer are held
    };
    struct Turn {
        Answer answer;
        const PlannedBuffer* buffer;  ///< if served: the buffer to hand out now; else nullptr
        const PlannedBuffer* next;    ///< the buffer whose turn is next
    };

    /// Requires: the tables outlive the follower. Throws std::bad_alloc.
    explicit Follower(PlanTables& tables) : tables_(tables), seen_(tables.count) {
        stack_.reserve(tables.count);
    }

    /// Finds the turn of a request that came where `next` was expected. Requires: `bytes` is above
    /// 0, and `alignment` is a power of two.
    // A request that does not match the next buffer is additional, has changed its size, or comes
    // after requests that were left out. Only the requests after it show which.
    Turn find(const PlannedBuffer& next, std::size_t bytes, std::size_t alignment) noexcept {
        const std::uint32_t present = number_of(next);
        if (matches(present, bytes, alignment)) return take(present);
        const std::uint32_t to = find_jump(present, bytes, alignment);
        if (to != nowhere) return jump(present, to);
        if (suspected_at_ == present || is_late(present, bytes, alignment)) {
            return {Answer::out_of_order, nullptr, &next};
        }
        return take_changed(present, bytes, alignment);
    }
    /// Ends the iteration where `next` was expected: marks the remaining buffers as passed.
    void end_iteration(const PlannedBuffer& next) noexcept {
        pass(number_of(next), tables_.count);
        missed_ = lent_ = suspected_at_ = nowhere;
    }

private:
    // The number of buffers that are searched ahead of and behind the expected one.
    static constexpr std::uint32_t max_ahead = 32;
    static constexpr std::uint32_t nowhere = PlanTables::no_buffer;

    std::uint32_t number_of(const PlannedBuffer& buffer) const noexcept {
        return tables_.number_of(buffer);
    }
    // Buffers that the pool serves are matched by size only; the pool aligns each block as
    // requested.
    bool matches(std::uint32_t number, std::size_t bytes, std::size_t alignment) const noexcept {
        if (number >= tables_.count) return false;
        const PlannedBuffer& buffer = tables_.buffers[number];
        const bool same_size = buffer.bytes - bytes < detail::plan_granule_bytes;
        return same_size && (buffer.address == nullptr || alignment <= buffer.max_alignment);
    }
    // A wrong jump ahead makes every skipped request a miss. So a jump needs two matching requests
    // in a row, or one right after a request that may have grown. Buffers that the pool serves are
    // skipped freely, because they may have been requested only once. After a single match, the
    // jump is suspected until the next request.
    std::uint32_t find_jump(std::uint32_t present, std::size_t bytes,
                            std::size_t alignment) noexcept {
        const bool is_suspected = suspected_at_ == present;
        suspected_at_ = nowhere;
        if (is_suspected && matches(suspected_, bytes, alignment)) return suspected_;
        const std::uint32_t near = step_over_pools(missed_ == present ? present + 1 : present);
        if (matches(near, bytes, alignment)) return near;
        for (std::uint32_t buffer = present + 1; buffer <= present + max_ahead; ++buffer) {
            if (!matches(buffer, bytes, alignment)) continue;
            suspected_at_ = present;
            suspected_ = buffer + 1;
            break;
        }
        return nowhere;
    }
    // Returns whether the request matches a recent buffer that was passed or given to another
    // request.
    bool is_late(std::uint32_t present, std::size_t bytes, std::size_t alignment) const noexcept {
        const std::uint32_t first = present - std::min(present, max_ahead);
        for (std::uint32_t buffer = first; buffer < present; ++buffer) {
            const BufferState state = tables_.states[buffer].load(std::memory_order_relaxed);
            if (state != BufferState::passed && buffer != lent_) continue;
            if (matches(buffer, bytes, alignment)) return true;
        }
        return false;
    }
    Turn jump(std::uint32_t present, std::uint32_t to) noexcept {
        pass(present, to);
        return take(to);
    }
    // Treats the request as the next one in the sequence, with a changed size.
    Turn take_changed(std::uint32_t present, std::size_t bytes, std::size_t alignment) noexcept {
        const std::uint32_t turn = step_over_pools(missed_ == present ? present + 1 : present);
        pass(present, turn);
        const PlannedBuffer& buffer = tables_.buffers[turn];
        if (turn == tables_.count) return {Answer::unknown, nullptr, &buffer};
        if (!fits(buffer, bytes, alignment)) {
            missed_ = turn;
            return {Answer::too_large, nullptr, &buffer};
        }
        lent_ = turn;
        return take(turn);
    }
    std::uint32_t step_over_pools(std::uint32_t buffer) const noexcept {
        while (buffer < tables_.count && tables_.buffers[buffer].address == nullptr) ++buffer;
        return buffer;
    }
    // Serves the buffer if its bytes are free. Its turn is over in any case.
    Turn take(std::uint32_t number) noexcept {
        const PlannedBuffer& buffer = tables_.buffers[number];
        if (buffer.address == nullptr) return {Answer::left_to_pool, nullptr, &buffer + 1};
        if (is_clear(buffer)) return {Answer::served, &buffer, &buffer + 1};
        pass(number, number + 1);
        return {Answer::still_in_use, nullptr, &buffer + 1};
    }
    // Marks buffers as passed, except those that are held (see plan_tables.hpp). The acquire load
    // pairs with the release store of a free, so that accesses by the former holder happen before
    // later ones.
    void pass(std::uint32_t from, std::uint32_t to) noexcept {
        for (std::uint32_t buffer = from; buffer < to; ++buffer) {
            std::atomic<BufferState>& state = tables_.states[buffer];
            if (state.load(std::memory_order_acquire) == BufferState::held) continue;
            state.store(BufferState::passed, std::memory_order_relaxed);
        }
    }
    // Rule 2 of plan_tables.hpp, extended through passed buffers: for each byte of the buffer, the
    // search goes back to the last buffer that was not passed.
    bool is_clear(const PlannedBuffer& buffer) noexcept {
        if (++search_ == 0) {
            std::ranges::fill(seen_, 0);
            search_ = 1;
        }
        stack_.clear();
        push_predecessors(buffer);
        while (!stack_.empty()) {
            const std::uint32_t predecessor = stack_.back();
            stack_.pop_back();
            if (!check_predecessor(predecessor, buffer)) return false;
        }
        return true;
    }
    // Returns false if the predecessor is held and shares bytes with the requested buffer.
    bool check_predecessor(std::uint32_t predecessor, const PlannedBuffer& wanted) noexcept {
        const PlannedBuffer& buffer = tables_.buffers[predecessor];
        if (!share_bytes(buffer, wanted)) return true;
        const BufferState state = tables_.states[predecessor].load(std::memory_order_acquire);
        if (state == BufferState::passed) push_predecessors(buffer);
        return state != BufferState::held;
    }
    void push_predecessors(const PlannedBuffer& buffer) noexcept {
        const std::uint32_t* const first = tables_.predecessors + buffer.first_predecessor;
        for (std::uint32_t i = 0; i < buffer.predecessor_count; ++i) {
            if (seen_[first[i]] == search_) continue;
            seen_[first[i]] = search_;
            stack_.push_back(first[i]);
        }
    }

    PlanTables& tables_;
    // The buffer whose request may have come already, with a larger size.
    std::uint32_t missed_ = nowhere;
    // The buffer that was given to a smaller request, which may have been an additional one.
    std::uint32_t lent_ = nowhere;
    // While `suspected_at_` is the expected buffer: a request matched the buffer right before
    // `suspected_`. If the next request matches `suspected_`, the iteration has jumped there.
    std::uint32_t suspected_at_ = nowhere;
    std::uint32_t suspected_ = nowhere;
    // The search of `is_clear`: the buffers still to visit, and the last search that saw each.
    std::vector<std::uint32_t> stack_;
    std::vector<std::uint32_t> seen_;
    std::uint32_t search_ = 0;
};

}  // namespace tensorpool::planned
