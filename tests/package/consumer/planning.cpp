/// Uses the component `planning` alone. Exits with 0 if everything works.

#include <vector>

#include <tensorpool/memory_plan.hpp>
#include <tensorpool/planned_arena.hpp>

int main() {
    const std::vector<tensorpool::TensorLifetime> lifetimes = {{.begin = 0, .end = 2, .bytes = 64},
                                                               {.begin = 2, .end = 3, .bytes = 64}};
    const tensorpool::MemoryPlan plan = tensorpool::plan_memory(lifetimes);
    tensorpool::validate(lifetimes, plan);
    const tensorpool::PlannedArena arena;
    return plan.peak_bytes == 64 ? 0 : 1;
}
