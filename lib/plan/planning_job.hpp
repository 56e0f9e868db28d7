#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "plan/learned_plan.hpp"

namespace tensorpool::planned {

/// The computation of a plan, which may run on another thread. The arena and the executor share its
/// ownership. It does not refer to the arena, which may be destroyed first.
class PlanningJob {
public:
    PlanningJob(std::vector<Request> requests, std::chrono::nanoseconds budget) noexcept
        : requests_(std::move(requests)), budget_(budget) {}

    /// Makes the plan. Further calls do nothing. Any thread.
    void run() noexcept;
    /// Returns whether `run` has finished, so that `take` may be called. Acquire: pairs with the
    /// release store in `run`.
    bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// Returns the plan, or nullopt if it could not be made. Requires: `is_done()`.
    std::optional<LearnedPlan> take() noexcept { return std::move(plan_); }

private:
    std::vector<Request> requests_;
    std::chrono::nanoseconds budget_;
    std::optional<LearnedPlan> plan_;
    std::atomic<bool> started_ = false;
    std::atomic<bool> done_ = false;  // stored with release after the plan
};

}  // namespace tensorpool::planned
