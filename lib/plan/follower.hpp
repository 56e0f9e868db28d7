#pragma once

#include <vector>

#include <tensorpool/detail/plan_tables.hpp>

namespace tensorpool::planned {

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanTables;

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
    explicit Follower(PlanTables& tables);

    /// Finds the turn of a request that came where `next` was expected. Requires: `bytes` is above
    /// 0, and `alignment` is a power of two.
    Turn find(const PlannedBuffer& next, std::size_t bytes, std::size_t alignment) noexcept;
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
    bool matches(std::uint32_t buffer, std::size_t bytes, std::size_t alignment) const noexcept;
    std::uint32_t find_jump(std::uint32_t present, std::size_t bytes,
                            std::size_t alignment) noexcept;
    bool is_late(std::uint32_t present, std::size_t bytes, std::size_t alignment) const noexcept;
    Turn jump(std::uint32_t present, std::uint32_t to) noexcept;
    Turn take_changed(std::uint32_t present, std::size_t bytes, std::size_t alignment) noexcept;
    std::uint32_t step_over_pools(std::uint32_t buffer) const noexcept;
    Turn take(std::uint32_t buffer) noexcept;
    void pass(std::uint32_t from, std::uint32_t to) noexcept;
    bool is_clear(const PlannedBuffer& buffer) noexcept;
    bool check_predecessor(std::uint32_t predecessor, const PlannedBuffer& wanted) noexcept;
    void push_predecessors(const PlannedBuffer& buffer) noexcept;

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
