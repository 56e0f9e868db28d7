#include "planned/planning_job.hpp"

#include <exception>

namespace tensorpool::planned {

// Relaxed: whoever comes first runs it, and reads what was there before the executor was called.
void PlanningJob::run() noexcept {
    if (started_.exchange(true, std::memory_order_relaxed)) return;
    try {
        plan_ = plan_sequence(std::move(requests_), budget_);
    } catch (const std::exception&) {
        // No memory to plan in, or sizes that no plan can hold: there is none.
    }
    done_.store(true, std::memory_order_release);
}

}  // namespace tensorpool::planned
