#pragma once

#include <cstddef>
#include <vector>

#include "simulation/schedule/schedule_driver.hpp"

namespace tensorpool::device {

/// Leads run after run through the tree of choices, depth first. `begin`, a run, `next`, until that
/// says that all was seen.
///
/// A step that was tried at a point sleeps below the point's other choices until something is done
/// that it depends on: before that, to do it would only be another order of the same.
class Explorer final : public ScheduleDriver {
public:
    void begin();
    /// False where no choice is left.
    bool next();
    /// This run is only another order of one before.
    bool redundant() const noexcept { return redundant_; }
    std::vector<unsigned> choices() const;

    unsigned choose_step(const std::vector<Step>& steps) override;
    bool choose_not_ready() override;
    void done(const Step& step) override;

private:
    struct Point {
        std::vector<Step> steps;   // empty: a query, with two answers
        std::vector<Step> asleep;  // when it was met
        unsigned chosen = 0;
    };

    bool sleeps(const Step& step) const noexcept;
    unsigned first_awake(const std::vector<Step>& steps, unsigned from) const noexcept;
    unsigned go(const Point& point);
    bool advance(Point& point);

    std::vector<Point> path_;
    std::size_t depth_ = 0;
    std::vector<Step> asleep_;
    bool redundant_ = false;
};

}  // namespace tensorpool::device
