#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tensorpool/detail/plan_tables.hpp>

namespace tensorpool::planned {

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanTables;

/// Finds out where in a plan's sequence an iteration is, when a request is not the one whose turn
/// it is. The owner's.
class Follower {
public:
    enum class Answer {
        served,        ///< by the slot
        left_to_pool,  ///< as the plan wants it
        too_large,     ///< larger than its slot, or of more alignment
        out_of_order,  ///< its turn went by, or is yet to come
        unknown,       ///< the sequence has ended
        still_in_use,  ///< somebody holds bytes of its slot
    };
    struct Turn {
        Answer answer;
        const PlannedBuffer* slot;  ///< served: the slot that may be handed out now
        const PlannedBuffer* next;  ///< whose turn it is after that
    };

    /// The tables must stay as long as it is used. Throws std::bad_alloc.
    explicit Follower(PlanTables& tables);

    /// The turn of a request that comes where `next` was expected. `bytes` is above 0, `alignment`
    /// a power of two.
    Turn find(const PlannedBuffer& next, std::size_t bytes, std::size_t alignment) noexcept;
    /// The iteration ends where `next` was expected: passes the turns that are left.
    void end_iteration(const PlannedBuffer& next) noexcept {
        pass(number_of(next), tables_.count);
        missed_ = lent_ = suspected_at_ = nowhere;
    }

private:
    // How far ahead the turn of a request is looked for.
    static constexpr std::uint32_t max_ahead = 32;
    static constexpr std::uint32_t nowhere = PlanTables::no_buffer;

    std::uint32_t number_of(const PlannedBuffer& slot) const noexcept {
        return tables_.number_of(slot);
    }
    bool asks_for(std::uint32_t slot, std::size_t bytes, std::size_t alignment) const noexcept;
    std::uint32_t find_jump(std::uint32_t present, std::size_t bytes,
                            std::size_t alignment) noexcept;
    bool is_late(std::uint32_t present, std::size_t bytes, std::size_t alignment) const noexcept;
    Turn jump(std::uint32_t present, std::uint32_t to) noexcept;
    Turn make_do(std::uint32_t present, std::size_t bytes, std::size_t alignment) noexcept;
    std::uint32_t step_over_pools(std::uint32_t slot) const noexcept;
    Turn take(std::uint32_t slot) noexcept;
    void pass(std::uint32_t from, std::uint32_t to) noexcept;
    bool is_clear(const PlannedBuffer& slot) noexcept;
    bool look_at(std::uint32_t before, const PlannedBuffer& wanted) noexcept;
    void push_predecessors(const PlannedBuffer& slot) noexcept;

    PlanTables& tables_;
    // The slot whose request may have come already, grown.
    std::uint32_t missed_ = nowhere;
    // The slot that a smaller request got, which may have come in addition.
    std::uint32_t lent_ = nowhere;
    // While the turn is that of `suspected_at_`: a request came that looked like that of the slot
    // before `suspected_`.
    std::uint32_t suspected_at_ = nowhere;
    std::uint32_t suspected_ = nowhere;
    // Of a search among slots: those to look at, and in which search each was seen last.
    std::vector<std::uint32_t> stack_;
    std::vector<std::uint32_t> seen_;
    std::uint32_t search_ = 0;
};

}  // namespace tensorpool::planned
