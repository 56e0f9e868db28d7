#pragma once

#include <memory>
#include <mutex>

#include "plan/owned_planned_record.hpp"
#include "plan/served_plan.hpp"

namespace tensorpool::planned {

/// The plan that an arena serves, and the retired plans, which have blocks that are still held.
/// Shows them in the arena's record. For the arena's owner.
class ServedPlans {
public:
    /// Both outlive the object. `mutex` is held while the list of retired plans changes, so that a
    /// fork does not copy half a change.
    ServedPlans(planned::OwnedPlannedRecord& record, std::mutex& mutex) noexcept
        : record_(record), mutex_(mutex) {}

    /// Returns the plan that is served; nullptr if there is none.
    ServedPlan* current() const noexcept { return current_.get(); }
    /// REQUIRES: there is no plan.
    void adopt(std::unique_ptr<ServedPlan> plan) noexcept;
    /// Retires the plan. Its blocks may be freed at any time. REQUIRES: there is a plan.
    void drop() noexcept;
    /// Destroys the retired plans of which no block is held.
    void release_retired() noexcept;
    /// Returns the retired plans, which outlive the arena.
    std::unique_ptr<ServedPlan> take_orphans() noexcept;
    void show_capacity() noexcept;

private:
    void show() noexcept;

    planned::OwnedPlannedRecord& record_;
    std::mutex& mutex_;
    std::unique_ptr<ServedPlan> current_;
    std::unique_ptr<ServedPlan> retired_;  // a list
};

}  // namespace tensorpool::planned
