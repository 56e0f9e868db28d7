/* A program in C99 that serves a loop from a planned arena. It exits with 0 if all expectations
   hold. */

#include <stddef.h>

#include <tensorpool/tensorpool_planned.h>

#include "c_expect.h"

static void plan_now(tensorpool_planning_job* job, void* user) {
    ++*(int*)user;
    tensorpool_planning_job_run(job);
}

int main(void) {
    int jobs = 0;
    int step;
    tensorpool_planned_arena_options options;
    tensorpool_planned_arena_statistics statistics;
    tensorpool_planned_arena* arena;

    expect(tensorpool_planned_arena_options_init(&options, sizeof options) == tensorpool_ok,
           "options");
    options.name = "training";
    options.executor = plan_now;
    options.executor_user = &jobs;
    arena = tensorpool_planned_arena_create(&options);
    expect(arena != NULL, "an arena");
    if (arena == NULL) return 1;

    for (step = 0; step < 10; ++step) {
        char* activation;
        char* workspace;
        expect(tensorpool_planned_arena_begin_iteration(arena) == tensorpool_ok, "a beginning");
        activation = tensorpool_planned_arena_allocate(arena, 100000);
        workspace = tensorpool_planned_arena_allocate_aligned(arena, 300000, 4096);
        expect(activation != NULL && workspace != NULL, "two blocks");
        activation[0] = workspace[299999] = 1;
        tensorpool_planned_arena_deallocate(arena, workspace);
        tensorpool_planned_arena_deallocate(arena, activation);
        expect(tensorpool_planned_arena_end_iteration(arena) == tensorpool_ok, "an end");
    }
    expect(jobs == 1, "one plan, made by the executor");
    statistics.struct_bytes = sizeof statistics;
    expect(tensorpool_planned_arena_read_statistics(arena, &statistics) == tensorpool_ok,
           "statistics");
    expect(statistics.state == tensorpool_planned_arena_serving, "the plan serves");
    expect(statistics.buffers == 2 && statistics.iterations == 10, "figures");
    expect(statistics.served > statistics.from_pool, "most requests served by the plan");
    expect(tensorpool_planned_arena_end_iteration(arena) == tensorpool_other_failure,
           "no end without a beginning");
    tensorpool_planned_arena_destroy(arena);
    return failures == 0 ? 0 : 1;
}
