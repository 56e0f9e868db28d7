#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tensorpool::planner {

/// How long a search may go on: counted in steps, and by the clock, which is asked only now and
/// then.
class Work {
public:
    using Clock = std::chrono::steady_clock;
    /// `max_steps` 0: no bound.
    Work(Clock::time_point deadline, std::uint64_t max_steps) noexcept
        : deadline_(deadline), most_(max_steps == 0 ? UINT64_MAX : max_steps) {}

    /// Takes a step. False when there is no more time: also for all later calls.
    bool step() noexcept {
        if (++steps_ < next_look_) return true;
        return look();
    }
    bool over() const noexcept { return over_; }
    std::uint64_t steps() const noexcept { return steps_; }

    /// At most `steps` of what is left, for a part of the search; `spend` then counts what it took,
    /// and at least one.
    Work part(std::uint64_t steps) const noexcept {
        Work part(deadline_, 0);
        part.most_ = std::min(steps, most_ - std::min(steps_, most_));
        return part;
    }
    void spend(const Work& part) noexcept {
        steps_ += std::max(part.steps_, std::uint64_t{1});
        look();
    }

private:
    static constexpr std::uint64_t between_looks = 256;
    bool look() noexcept {
        if (over_ || steps_ > most_ || Clock::now() >= deadline_) over_ = true;
        // Once it is over, each step looks, and finds that.
        next_look_ = over_ ? 0 : steps_ + (most_ - steps_ < between_looks ? 1 : between_looks);
        return !over_;
    }

    Clock::time_point deadline_;
    std::uint64_t most_;
    std::uint64_t steps_ = 0;
    std::uint64_t next_look_ = 0;
    bool over_ = false;
};

}  // namespace tensorpool::planner
