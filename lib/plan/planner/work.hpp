#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tensorpool::planner {

/// The budget of a search, in steps and in time. The clock is read once in 256 steps only. If it
/// goes back, the deadline goes back with it.
class Work {
public:
    using Clock = std::chrono::steady_clock;
    /// A `max_steps` of 0 means no limit on steps.
    Work(Clock::time_point deadline, std::uint64_t max_steps) noexcept
        : deadline_(deadline), max_steps_(max_steps == 0 ? UINT64_MAX : max_steps) {}

    /// Takes a step. Returns false once the budget is spent, and then for all later calls.
    bool step() noexcept {
        if (++steps_ < next_read_) return true;
        return read_clock();
    }
    bool over() const noexcept { return over_; }
    std::uint64_t steps() const noexcept { return steps_; }

    /// Returns a budget of at most `steps` of the remaining ones, for a part of the search. `spend`
    /// then counts the steps that the part took, at least one.
    Work part(std::uint64_t steps) const noexcept {
        Work part(deadline_, 0);
        part.max_steps_ = std::min(steps, max_steps_ - std::min(steps_, max_steps_));
        return part;
    }
    void spend(const Work& part) noexcept {
        steps_ += std::max(part.steps_, std::uint64_t{1});
        read_clock();
    }

    /// Returns whether the deadline has passed at this time, the clock's present one.
    bool is_past_deadline(Clock::time_point now) noexcept {
        if (now < last_read_ && deadline_ != Clock::time_point::max()) {
            deadline_ = now + (deadline_ - last_read_);
        }
        last_read_ = now;
        return now >= deadline_;
    }

private:
    static constexpr std::uint64_t steps_between_reads = 256;
    bool read_clock() noexcept {
        if (over_ || steps_ > max_steps_ || is_past_deadline(Clock::now())) over_ = true;
        // Once the work is over, every step comes here and returns false.
        next_read_ =
            over_ ? 0
                  : steps_ + (max_steps_ - steps_ < steps_between_reads ? 1 : steps_between_reads);
        return !over_;
    }

    Clock::time_point deadline_;
    Clock::time_point last_read_ = Clock::time_point::min();
    std::uint64_t max_steps_;
    std::uint64_t steps_ = 0;
    std::uint64_t next_read_ = 0;
    bool over_ = false;
};

}  // namespace tensorpool::planner
