#include "simulation/schedule/schedule_driver.hpp"

#include <algorithm>

namespace tensorpool::device {

ScheduleDriver::~ScheduleDriver() = default;

std::unique_ptr<SimulatedBackend> ScheduleDriver::make_backend(const SimulationOptions& options,
                                                               ScheduleDriver& driver) {
    return std::unique_ptr<SimulatedBackend>(new SimulatedBackend(options, driver));
}

unsigned ReplayDriver::next(unsigned count) noexcept {
    if (made_ == choices_.size()) return 0;
    return std::min(choices_[made_++], count - 1);
}

// A choice with one alternative is not recorded.
unsigned ReplayDriver::choose_step(const std::vector<Step>& steps) {
    return steps.size() == 1 ? 0 : next(static_cast<unsigned>(steps.size()));
}

bool ReplayDriver::choose_not_ready() {
    return next(2) == 0;
}

}  // namespace tensorpool::device
