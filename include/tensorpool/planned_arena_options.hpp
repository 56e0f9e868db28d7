#pragma once

/// @file
/// The options of a planned arena. All sizes are in bytes.

#include <chrono>

#include <tensorpool/pool_options.hpp>

namespace tensorpool {

class Budget;
class MemoryPool;

/// Options for constructing a PlannedArena.
struct PlannedArenaOptions {
    /// Name shown in statistics and messages; at most 47 bytes are kept.
    std::string name = "planned";
    /// The pool for requests that no plan serves; it must outlive the arena. nullptr means the
    /// global pool.
    MemoryPool* pool = nullptr;
    /// The budget to which the arena charges the memory of its plans while it has borrowed it,
    /// besides what the pool charges for it; nullptr for that of the BudgetScope in which the
    /// iteration begins, if there is one. If it refuses, the pool serves the iteration. It may end
    /// before the arena.
    Budget* budget = nullptr;
    /// The number of iterations that the pool serves before the arena learns. The first iteration
    /// of a loop often makes what later ones keep, such as gradients and the optimizer's state.
    unsigned warm_up_iterations = 0;
    /// The number of consecutive iterations with the same requests before the arena plans; at least
    /// 1. Each buffer gets its longest lifetime among them, so a higher number helps if other
    /// threads free at varying times.
    unsigned learn_iterations = 1;
    /// Time limit for planning, as PlanOptions::budget. A first plan is always made, whatever it
    /// takes: 2 ms for 1,000 buffers, 40 ms for 10,000, 200 ms for 28,000.
    std::chrono::nanoseconds planning_budget = std::chrono::milliseconds(50);
    /// Runs the planning. It receives a function to call once, on any thread, now or later; until
    /// then the pool serves. The function may outlive the arena. If empty, `end_iteration` plans on
    /// the calling thread.
    std::function<void(std::function<void()>)> executor = {};
    /// An iteration drifts if the pool had to serve more requests than this fraction of the plan's
    /// buffers.
    double tolerated_misses = 0.02;
    /// The number of consecutive drifting iterations after which the arena learns again; at least
    /// 1. It doubles, up to 64 times the value, with each plan for which every iteration drifted.
    unsigned drift_iterations = 3;
    /// `basic` stops the program if a thread other than the iteration's owner makes a request that
    /// the plan does not serve; `full` also if the arena is destroyed with blocks in use.
    /// With `hardened` no plan serves, because nothing would lie between its blocks: each request
    /// is a block of the pool.
    Checks checks = default_checks();
};

}  // namespace tensorpool
