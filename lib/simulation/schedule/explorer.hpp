#pragma once

#include <cstddef>
#include <vector>

#include "simulation/schedule/schedule_driver.hpp"

namespace tensorpool::device {

/// Drives run after run through the tree of choices, depth first. Use: `begin`, one run, `next`,
/// repeated until `next` returns false.
///
/// A step that was tried at a point sleeps below the point's other choices until a step runs that
/// it depends on. Running it earlier would only repeat an equivalent order (sleep sets).
class Explorer final : public ScheduleDriver {
public:
    void begin();
    /// Moves on to the next untried choice. Returns false if none is left.
    bool next();
    /// Whether this run is only an equivalent order of an earlier one.
    bool redundant() const noexcept { return redundant_; }
    std::vector<unsigned> choices() const;

    unsigned choose_step(const std::vector<Step>& steps) override;
    bool choose_not_ready() override;
    void done(const Step& step) override;

private:
    struct Point {
        std::vector<Step> steps;   // empty: a query, which has two answers
        std::vector<Step> asleep;  // when the point was reached
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
