#pragma once

/// @file
/// All orders in which a small program's work can be done on a simulated device.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/device/hazard.hpp>
#include <tensorpool/device/simulated_backend.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

struct Exploration {
    std::uint64_t schedules = 0;  ///< that ran
    /// Of those, the ones that turned out to be like one before: they ran to their end all the
    /// same.
    std::uint64_t redundant = 0;
    bool bound_met = false;         ///< there are more, which did not run
    std::optional<Hazard> hazard;   ///< the first that was found
    std::string failure;            ///< what the program threw, where it did; else ""
    std::vector<unsigned> choices;  ///< that led there: see Schedule::replayed
};

/// Runs the program on a fresh backend with these options (less their schedule) again and again,
/// each time with other choices of which stream goes on and of whether a query finds its event
/// reached, until all were made, a hazard is found or the program throws. Orders of work that
/// touches nothing in common count as one (sleep sets, after Godefroid, "Partial-Order Methods for
/// the Verification of Concurrent Systems", 1996); host functions, and kernels that have a function
/// and no ranges, may touch anything. A query is answered with "not_ready" twice in a row at most.
/// The program uses one thread, does the same when the same happens, and waits for what it wants
/// done: what is left in streams at its end is dropped. The backend is the search's own: a runtime
/// over it gets a shared pointer that destroys nothing, and ends before the program does. A
/// stateless search: memory is that of one run. Any thread.
TENSORPOOL_API Exploration explore(const SimulationOptions& options,
                                   const std::function<void(SimulatedBackend&)>& program,
                                   std::uint64_t max_schedules = 10'000);

}  // namespace tensorpool
