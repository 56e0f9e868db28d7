#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "planned/learned_plan.hpp"

namespace tensorpool::planned {

/// A plan to be made, perhaps on another thread. It belongs to the arena and to who makes it, and
/// knows nothing of the arena, which may go before it.
class PlanningJob {
public:
    PlanningJob(std::vector<Request> requests, std::chrono::nanoseconds budget) noexcept
        : requests_(std::move(requests)), budget_(budget) {}

    /// Once; called again, it does nothing. Any thread.
    void run() noexcept;
    /// After that `take` may be called.
    bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// Nothing where it could not be made.
    std::optional<LearnedPlan> take() noexcept { return std::move(plan_); }

private:
    std::vector<Request> requests_;
    std::chrono::nanoseconds budget_;
    std::optional<LearnedPlan> plan_;
    std::atomic<bool> started_ = false;
    std::atomic<bool> done_ = false;  // release, after the plan was stored
};

}  // namespace tensorpool::planned
