#include <tensorpool/device/explore.hpp>

#include <exception>

#include "simulation/schedule/explorer.hpp"

namespace tensorpool {
namespace {

using device::Explorer;

void run(const SimulationOptions& options, const std::function<void(SimulatedBackend&)>& program,
         Explorer& explorer, Exploration& found) {
    explorer.begin();
    const auto backend = device::ScheduleDriver::make_backend(options, explorer);
    try {
        program(*backend);
    } catch (const std::exception& error) {
        found.failure = error.what();
        if (found.failure.empty()) found.failure = "an exception without a text";
    }
    ++found.schedules;
    if (explorer.redundant()) ++found.redundant;
    const std::vector<Hazard> hazards = backend->hazards();
    if (!hazards.empty()) found.hazard = hazards.front();
    if (found.hazard || !found.failure.empty()) found.choices = explorer.choices();
}

}  // namespace

Exploration explore(const SimulationOptions& options,
                    const std::function<void(SimulatedBackend&)>& program,
                    std::uint64_t max_schedules) {
    SimulationOptions driven = options;
    driven.schedule = Schedule::replayed;
    Explorer explorer;
    Exploration found;
    do {
        if (found.schedules == max_schedules) {
            found.bound_met = true;
            break;
        }
        run(driven, program, explorer, found);
    } while (!found.hazard && found.failure.empty() && explorer.next());
    return found;
}

}  // namespace tensorpool
