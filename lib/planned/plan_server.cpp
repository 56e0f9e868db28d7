#include "planned/plan_server.hpp"

#include <algorithm>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/detail/saturating.hpp>

#include "planned/planned_state.hpp"
#include "statistics/budget/budgets.hpp"

namespace tensorpool::detail {

void PlanServer::begin_iteration() {
    const std::lock_guard guard(mutex_);
    state_.begin_iteration();
    // The pool serves this iteration; it and the idle plans of other loops would add up.
    if (state_.plans_.current() == nullptr) (void)give_back_idle_plans();
}

void PlanServer::end_iteration() noexcept {
    const std::lock_guard guard(mutex_);
    state_.end_iteration();
}

void* PlanServer::serve(Pool& pool, std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                        Pool::FirstTouch first_touch) noexcept {
    // The thread that asks this one's holder may hold the lock.
    if (statistics::is_inside_holder()) return pool.allocate(bytes, alignment, path, first_touch);
    // Requests for finer sizes come with smaller alignments.
    alignment = std::max(alignment, smallest_block_bytes);
    const std::lock_guard guard(mutex_);
    is_used_ = true;
    return state_.serve_for(pool, bytes, alignment,
                            [&] { return pool.allocate(bytes, alignment, path, first_touch); });
}

bool PlanServer::note_free(void* p) noexcept {
    return state_.requests_.note_free(p);
}

void PlanServer::rest(planned::ServedPlan& plan) noexcept {
    if (!is_used() || plan.has_held()) return;
    const std::lock_guard guard(block_servers());
    set_resting(&plan);
    lacked_bytes_ = 0;
}

void PlanServer::end_rest() noexcept {
    const std::lock_guard guard(block_servers());
    set_resting(nullptr);
}

void PlanServer::set_resting(planned::ServedPlan* plan) noexcept {
    if (resting_ == nullptr && plan != nullptr) {
        idle_plan_count.fetch_add(1, std::memory_order_relaxed);
    }
    if (resting_ != nullptr && plan == nullptr) {
        idle_plan_count.fetch_sub(1, std::memory_order_relaxed);
    }
    resting_ = plan;
}

bool PlanServer::prepare(planned::ServedPlan& plan) noexcept {
    pages::SlowPath path;
    return plan.borrow_memory(path);
}

// While little is lacking, the pool grows instead: otherwise a small block between two iterations
// would lie in the plan's memory, and the plan would have to begin with fresh pages elsewhere.
void PlanServer::give_back_idle(std::size_t wanted) noexcept {
    if (resting_ == nullptr) return;
    lacked_bytes_ = sum(lacked_bytes_, wanted);
    if (lacked_bytes_ < resting_->capacity() / 4) return;
    resting_->return_memory();
    set_resting(nullptr);
    state_.plans_.show_capacity();
}

void PlanServer::forget_noted() noexcept {
    const std::lock_guard guard(block_servers());
    state_.requests_.forget_noted(PoolAccess::of(state_.pool_));
}

}  // namespace tensorpool::detail
