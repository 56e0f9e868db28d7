#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <tensorpool/detail/plan_tables.hpp>

#include "base/refusal.hpp"
#include "pages/page_map.hpp"
#include "planned/learned_plan.hpp"
#include "statistics/segment/owned_planned_record.hpp"

namespace tensorpool::planned {

struct Predecessors;

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanRange;
using detail::PlanTables;

/// The memory of a plan, with its tables in front of it, in addresses that the pools' address space
/// lends. Exactly the bytes that the plan needs are committed, rounded up to whole pages. The
/// destructor releases all of it.
class ServedPlan {
public:
    /// Creates the memory and the tables of a plan. Returns nullptr if there is no memory, with the
    /// reason in `refusal`. Throws std::bad_alloc, and std::invalid_argument for a plan of more
    /// than PlanRange::max_bytes.
    static std::unique_ptr<ServedPlan> make(LearnedPlan plan, base::Refusal& refusal);
    ~ServedPlan();
    ServedPlan(const ServedPlan&) = delete;
    ServedPlan& operator=(const ServedPlan&) = delete;

    const LearnedPlan& plan() const noexcept { return plan_; }
    PlanRange range() const noexcept { return range_; }
    PlanTables& tables() const noexcept { return range_.tables(); }
    /// Bytes committed, tables included.
    std::size_t capacity() const noexcept { return committed_; }

    /// Counts frees that the plan's pages receive from pools in this record, which the plan keeps.
    void count_in(std::shared_ptr<statistics::OwnedPlannedRecord> record) noexcept;
    /// The thread with this address of a thread-local variable counts its frees with plain stores.
    void set_first_owner(const void* thread) noexcept;

    /// Returns whether some buffer is still held. Requires: no buffer is handed out any more, so
    /// that buffers once found free need not be checked again.
    bool is_held() noexcept;

    std::unique_ptr<ServedPlan> next;  ///< link of a list of retired plans

private:
    class Layout;
    class PlanPages;
    explicit ServedPlan(LearnedPlan plan) noexcept : plan_(std::move(plan)) {}
    bool get_memory(const Layout& layout, base::Refusal& refusal) noexcept;
    void fill(const Layout& layout, const Predecessors& predecessors) noexcept;
    void fill_buffers(PlanTables& tables, const Predecessors& predecessors) const noexcept;
    PlanPages& pages() const noexcept;
    static std::uint32_t enter_start(PlanTables& tables, std::uint64_t offset) noexcept;

    LearnedPlan plan_;
    PlanRange range_;
    pages::PageRun lent_;
    std::size_t committed_ = 0;
    std::shared_ptr<statistics::OwnedPlannedRecord> record_;
    std::uint32_t first_held_ = 0;  // all buffers below this number are known to be free
};

/// Removes the plans without held buffers from a list of retired plans, and returns them as a list.
std::unique_ptr<ServedPlan> take_unheld(std::unique_ptr<ServedPlan>& plans) noexcept;

}  // namespace tensorpool::planned
