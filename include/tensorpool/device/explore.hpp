#pragma once

/// @file
/// A search of all orders in which a small program's work can run on a simulated device.

#include <optional>

#include <tensorpool/device/simulated_backend.hpp>

namespace tensorpool {

/// The result of a search.
struct Exploration {
    /// The number of schedules that ran.
    std::uint64_t schedules = 0;
    /// The number of them that turned out to be equivalent to an earlier one. They still ran to
    /// their end.
    std::uint64_t redundant = 0;
    /// Whether the bound was met, so that further schedules did not run.
    bool bound_met = false;
    /// The first hazard found, if any.
    std::optional<Hazard> hazard;
    /// The text of the exception that the program threw; "" if it threw none.
    std::string failure;
    /// The choices that led to the hazard or the exception; see Schedule::replayed.
    std::vector<unsigned> choices;
};

/// Runs the program repeatedly, each time on a fresh backend with these options (except their
/// schedule) and with other choices. The search ends when all choices were made, a hazard is found,
/// the program throws, or `max_schedules` ran.
///
/// The choices are which stream continues and whether a query finds its event reached. A query
/// returns not_ready at most twice in a row. Orders of work without memory in common count as one
/// (sleep sets, after Godefroid, "Partial-Order Methods for the Verification of Concurrent
/// Systems", 1996). Host functions, and kernels with a function and without ranges, are assumed to
/// touch any memory.
///
/// It is for tests: those of a program's own streams, and those of this library's allocators
/// (tests/stress/devices).
///
/// The program must use one thread, be deterministic, and wait for the work that it needs: work
/// left in streams at its end is dropped. The backend belongs to the search. A runtime over it gets
/// a shared pointer that destroys nothing, and must end before the program does. The search stores
/// no states, so its memory is that of one run. Any thread may call it.
TENSORPOOL_API Exploration explore(const SimulationOptions& options,
                                   const std::function<void(SimulatedBackend&)>& program,
                                   std::uint64_t max_schedules = 10'000);

}  // namespace tensorpool
