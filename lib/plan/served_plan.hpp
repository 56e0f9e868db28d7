#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <tensorpool/detail/plan_tables.hpp>

#include "limits/held_budget.hpp"
#include "plan/learned_plan.hpp"
#include "plan/owned_planned_record.hpp"
#include "pool/pool.hpp"

namespace tensorpool::planned {

struct Predecessors;

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanTables;

/// The tables of a plan, and the memory for its buffers, which a pool lends. The memory comes and
/// goes while no buffer is held; the tables stay. The destructor releases both.
class ServedPlan {
public:
    /// Makes the tables of a plan and borrows the memory from `pool`, which must outlive the plan.
    /// Memory is charged to `budget` while it is borrowed. Returns nullptr if there is no memory,
    /// with the reason in `path`. Throws std::bad_alloc, and std::invalid_argument for a plan of
    /// more than PlanTables::max_bytes.
    static std::unique_ptr<ServedPlan> make(LearnedPlan plan, detail::Pool& pool,
                                            const limits::HeldBudget& budget,
                                            pages::SlowPath& path);
    ~ServedPlan();
    ServedPlan(const ServedPlan&) = delete;
    ServedPlan& operator=(const ServedPlan&) = delete;

    const LearnedPlan& plan() const noexcept { return plan_; }
    PlanTables& tables() const noexcept { return *tables_; }
    /// The bytes of the borrowed memory.
    std::size_t capacity() const noexcept { return span_ == nullptr ? 0 : span_->bytes(); }

    bool has_memory() const noexcept { return span_ != nullptr || plan_.peak_bytes == 0; }
    /// Borrows the memory. Returns false if the budget or the pool refuses, with the reason in
    /// `path`. Holders may be asked meanwhile, so the caller holds no lock that one may take.
    bool borrow_memory(pages::SlowPath& path) noexcept;
    /// Returns the memory to the pool. REQUIRES: no buffer is held.
    void return_memory() noexcept;
    /// Returns whether a buffer is held.
    bool has_held() const noexcept;

    /// From now on, `arena` serves the plan. Frees that pools pass on are counted in its record,
    /// which the plan keeps.
    void belong_to(const void* arena, std::shared_ptr<OwnedPlannedRecord> record) noexcept;
    /// The arena is being destroyed.
    void become_orphan() noexcept { tables_->arena = nullptr; }
    /// The thread with this address of a thread-local variable counts its frees with plain stores.
    void set_first_owner(const void* thread) noexcept;

    /// Returns whether some buffer is still held. Requires: no buffer is handed out any more, so
    /// that buffers once found free need not be checked again.
    bool is_held() noexcept;

    std::unique_ptr<ServedPlan> next;  ///< link of a list of retired plans

private:
    class Layout;
    class Owner;
    ServedPlan(LearnedPlan plan, detail::Pool& pool, const limits::HeldBudget& budget) noexcept
        : plan_(std::move(plan)), pool_(pool), budget_(budget) {}
    bool make_tables(const Predecessors& predecessors) noexcept;
    void fill_buffers(const Predecessors& predecessors) const noexcept;
    void set_addresses(std::byte* base) noexcept;
    Owner& owner() const noexcept;
    static std::uint32_t enter_start(PlanTables& tables, std::uint64_t offset) noexcept;

    LearnedPlan plan_;
    detail::Pool& pool_;
    const limits::HeldBudget budget_;
    void* mapping_ = nullptr;  // of the tables
    std::size_t mapping_bytes_ = 0;
    PlanTables* tables_ = nullptr;
    pages::Span* span_ = nullptr;  // of the borrowed memory
    std::shared_ptr<OwnedPlannedRecord> record_;
    std::uint32_t first_held_ = 0;  // all buffers below this number are known to be free
};

/// Removes the plans without held buffers from a list of retired plans, and returns them as a list.
std::unique_ptr<ServedPlan> take_unheld(std::unique_ptr<ServedPlan>& plans) noexcept;

}  // namespace tensorpool::planned
