#include "plan/served_plans.hpp"

#include <utility>

namespace tensorpool::planned {

void ServedPlans::adopt(std::unique_ptr<ServedPlan> plan) noexcept {
    current_ = std::move(plan);
    show();
}

void ServedPlans::drop() noexcept {
    {
        const std::lock_guard guard(mutex_);
        current_->next = std::move(retired_);
        retired_ = std::move(current_);
    }
    release_retired();
    show();
}

void ServedPlans::release_retired() noexcept {
    if (retired_ == nullptr) return;
    std::unique_ptr<ServedPlan> released;  // destroyed outside of the lock
    {
        const std::lock_guard guard(mutex_);
        released = take_unheld(retired_);
    }
    if (released == nullptr) return;
    released = nullptr;
    show();
}

std::unique_ptr<ServedPlan> ServedPlans::take_orphans() noexcept {
    for (auto* plan = retired_.get(); plan != nullptr; plan = plan->next.get())
        plan->become_orphan();
    return std::move(retired_);
}

void ServedPlans::show() noexcept {
    const LearnedPlan nothing;
    const LearnedPlan& plan = current_ != nullptr ? current_->plan() : nothing;
    const auto store = [](detail::Counter& counter, std::uint64_t value) {
        counter.store(value, std::memory_order_relaxed);
    };
    statistics::PlannedTotals& totals = record_.totals();
    store(totals.buffers, plan.requests.size());
    store(totals.lower_bound_bytes, plan.lower_bound_bytes);
    store(totals.pool_peak_bytes, plan.pool_peak_bytes);
    store(totals.plan_peak_bytes, plan.peak_bytes);
    show_capacity();
}

void ServedPlans::show_capacity() noexcept {
    std::uint64_t capacity = current_ != nullptr ? current_->capacity() : 0;
    for (auto* plan = retired_.get(); plan != nullptr; plan = plan->next.get())
        capacity += plan->capacity();
    detail::Counter& shown = record_.totals().capacity_bytes;
    if (shown.load(std::memory_order_relaxed) == capacity) return;
    shown.store(capacity, std::memory_order_relaxed);
    record_.note_capacity();
}

}  // namespace tensorpool::planned
