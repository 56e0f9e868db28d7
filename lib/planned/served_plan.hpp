#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <tensorpool/detail/plan_tables.hpp>

#include "base/refusal.hpp"
#include "planned/learned_plan.hpp"

namespace tensorpool::planned {

struct Befores;

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanRange;
using detail::PlanTables;

/// The memory of a plan, and in front of it the tables that serve it, in address space of their
/// own: exactly what the plan needs is committed, in whole pages. Goes with all of it.
class ServedPlan {
public:
    /// nullptr where the memory cannot be had, and `refusal` tells why. Throws std::bad_alloc, and
    /// std::invalid_argument for a plan of more than PlanRange::max_bytes.
    static std::unique_ptr<ServedPlan> make(LearnedPlan plan, base::Refusal& refusal);
    ~ServedPlan();
    ServedPlan(const ServedPlan&) = delete;
    ServedPlan& operator=(const ServedPlan&) = delete;

    const LearnedPlan& plan() const noexcept { return plan_; }
    PlanRange range() const noexcept { return range_; }
    PlanTables& tables() const noexcept { return range_.tables(); }
    /// Bytes committed, tables included.
    std::size_t capacity() const noexcept { return committed_; }

    /// Of one whose slots are not handed out any more: whether somebody still holds one. What was
    /// looked at once and was free is not looked at again.
    bool is_held() noexcept;

    std::unique_ptr<ServedPlan> next;  ///< in a list of plans that others hold blocks of

private:
    class Layout;
    explicit ServedPlan(LearnedPlan plan) noexcept : plan_(std::move(plan)) {}
    bool get_memory(const Layout& layout, base::Refusal& refusal) noexcept;
    void fill(const Layout& layout, const Befores& predecessors) noexcept;
    void fill_slots(PlanTables& tables, const Befores& predecessors) const noexcept;
    static std::uint32_t enter_start(PlanTables& tables, std::uint64_t offset) noexcept;

    LearnedPlan plan_;
    PlanRange range_;
    std::byte* reserved_ = nullptr;
    std::size_t reserved_bytes_ = 0;
    std::size_t committed_ = 0;
    std::uint32_t first_held_ = 0;  // those below were looked at and are free
};

}  // namespace tensorpool::planned
