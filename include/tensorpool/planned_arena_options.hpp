#pragma once

/// @file
/// What a planned arena can be told when it is made. All sizes are bytes.

#include <chrono>
#include <functional>
#include <string>

#include <tensorpool/pool_options.hpp>

namespace tensorpool {

class MemoryPool;

struct PlannedArenaOptions {
    /// Shown in statistics and messages; at most 47 bytes of it are kept.
    std::string name = "planned";
    /// Serves what no plan does; must outlive the arena. nullptr: the global pool.
    MemoryPool* pool = nullptr;
    /// So many iterations in a row must make the same requests before they are planned: 1 at least.
    /// Of each buffer the longest of their lifetimes counts, so more of them help where other
    /// threads free sooner or later.
    unsigned learn_iterations = 1;
    /// How long to plan, as PlanOptions::budget: a first plan is always made, of which that does
    /// not hold: 1,000 buffers take 2 ms, 10,000 take 40 ms, 28,000 take 200 ms.
    std::chrono::nanoseconds planning_budget = std::chrono::milliseconds(50);
    /// Where plans are made: it is handed a function to call once, on any thread, now or later;
    /// until then the pool serves. It may outlive the arena. Empty: `end_iteration` plans, on its
    /// thread.
    std::function<void(std::function<void()>)> executor = {};
    /// An iteration drifts when the pool had to serve more of it than this part of the plan's
    /// buffers.
    double tolerated_misses = 0.02;
    /// After so many drifting iterations in a row the arena learns anew: 1 at least. Each plan of
    /// which no iteration held doubles that, up to 64 times as many.
    unsigned drift_iterations = 3;
    /// `basic` stops the program where another thread than the iteration's allocates, as far as the
    /// plan does not serve it; `full` also where the arena is destroyed with blocks in use.
    Checks checks = default_checks();
};

}  // namespace tensorpool
