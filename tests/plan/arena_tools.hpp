#pragma once

#include <functional>
#include <vector>

#include <tensorpool/planned_arena.hpp>

namespace tensorpool::planned::testing {

/// Allocates blocks of these sizes and frees them in the same order, all in one iteration.
inline void iterate(PlannedArena& arena, const std::vector<std::size_t>& sizes) {
    const IterationScope scope(arena);
    std::vector<void*> blocks;
    for (const std::size_t bytes : sizes) blocks.push_back(arena.allocate(bytes));
    for (void* const block : blocks) arena.deallocate(block);
}

/// An executor that runs its jobs when `run_all` is called.
class LateExecutor {
public:
    std::function<void(std::function<void()>)> function() {
        return [this](std::function<void()> job) { jobs.push_back(std::move(job)); };
    }
    void run_all() {
        for (const auto& job : jobs) job();
        jobs.clear();
    }

    std::vector<std::function<void()>> jobs;
};

}  // namespace tensorpool::planned::testing
