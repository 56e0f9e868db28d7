#include "plan/orphaned_plans.hpp"

#include <utility>

#include "base/never_destroyed.hpp"

namespace tensorpool::planned {
namespace {

constinit base::NeverDestroyed<OrphanedPlans> the_orphaned_plans;

}  // namespace

OrphanedPlans& orphaned_plans() noexcept {
    return the_orphaned_plans.get();
}

void OrphanedPlans::add(std::unique_ptr<ServedPlan> plans) noexcept {
    if (plans == nullptr) return;
    {
        const std::lock_guard guard(mutex_);
        while (plans != nullptr) {
            auto rest = std::move(plans->next);
            plans->next = std::move(plans_);
            plans_ = std::move(plans);
            plans = std::move(rest);
            count_.fetch_add(1, std::memory_order_relaxed);
        }
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    release_unheld();
}

void OrphanedPlans::release_unheld() noexcept {
    std::unique_ptr<ServedPlan> released;  // destroyed outside of the lock
    const std::lock_guard guard(mutex_);
    released = take_unheld(plans_);
    for (auto* plan = released.get(); plan != nullptr; plan = plan->next.get()) {
        count_.fetch_sub(1, std::memory_order_relaxed);
    }
}

}  // namespace tensorpool::planned
