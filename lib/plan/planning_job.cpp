#include "plan/planning_job.hpp"

#include <exception>

namespace tensorpool::planned {

// Relaxed: the first thread that calls it runs it. The executor makes the requests visible to that
// thread.
void PlanningJob::run() noexcept {
    if (started_.exchange(true, std::memory_order_relaxed)) return;
    try {
        plan_ = plan_sequence(std::move(requests_), budget_);
    } catch (const std::exception&) {
        // There was no memory for planning, or the sizes exceed every plan: there is no result.
    }
    done_.store(true, std::memory_order_release);
}

}  // namespace tensorpool::planned
