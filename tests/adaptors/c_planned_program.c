/* A program in C99 that serves a loop from a planned arena. It exits with 0 if all expectations
   hold. */

#include <stddef.h>

#include <tensorpool/tensorpool_planned.h>

#include "c_expect.h"

static void plan_now(tensorpool_planning_job* job, void* user) {
    ++*(int*)user;
    tensorpool_planning_job_run(job);
}

static void serve_global_pool(void) {
    tensorpool_planned_arena* const arena = tensorpool_planned_arena_create(NULL);
    tensorpool_planned_arena_statistics statistics;
    void* kept = NULL;
    int step;

    expect(arena != NULL, "an arena");
    expect(tensorpool_serve_begin(arena, 1000) == NULL, "a threshold for small blocks fails");
    for (step = 0; step < 3; ++step) {
        tensorpool_serve_scope* const scope = tensorpool_serve_begin(arena, 0);
        tensorpool_serve_scope* const part = tensorpool_serve_join(scope);
        expect(scope != NULL && part != NULL, "scopes");
        expect(tensorpool_serve_join(part) == NULL, "a part cannot be joined");
        expect(tensorpool_serve_begin(arena, 0) == NULL, "one iteration at a time");
        kept = tensorpool_allocate(tensorpool_global(), 1000000);
        expect(kept != NULL, "a block");
        if (step < 2) tensorpool_deallocate(tensorpool_global(), kept);
        tensorpool_serve_end(part);
        tensorpool_serve_end(scope);
    }
    tensorpool_serve_end(NULL);
    statistics.struct_bytes = sizeof statistics;
    expect(tensorpool_planned_arena_read_statistics(arena, &statistics) == tensorpool_ok,
           "statistics");
    expect(statistics.from_pool == 1 && statistics.served == 2, "the plan served two of three");
    tensorpool_planned_arena_destroy(arena);
    *(char*)kept = 1;
    tensorpool_deallocate(tensorpool_global(), kept);
}

int main(void) {
    int jobs = 0;
    int step;
    tensorpool_planned_arena_options options;
    tensorpool_planned_arena_statistics statistics;
    tensorpool_planned_arena* arena;

    expect(tensorpool_planned_arena_options_init(&options, sizeof options) == tensorpool_ok,
           "options");
    expect(options.warm_up_iterations == 0, "no warm-up by default");
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

    serve_global_pool();
    return failures == 0 ? 0 : 1;
}
