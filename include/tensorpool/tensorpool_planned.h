#ifndef TENSORPOOL_TENSORPOOL_PLANNED_H
#define TENSORPOOL_TENSORPOOL_PLANNED_H

/// @file
/// Planned arenas for programs in C (C99): memory for a loop that makes the same requests in every
/// iteration. Sizes are bytes unless a name says otherwise.
///
/// A function reports a failure by its return value, and `tensorpool_last_error` of
/// <tensorpool/tensorpool.h> returns the reason. No C++ exception leaves a function. A NULL arena
/// is a failure. A failed call changes nothing.

#include <stddef.h>
#include <stdint.h>

#include <tensorpool/tensorpool.h>
#include <tensorpool/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/// An arena that learns the requests of one iteration of a loop, plans an offset for each buffer,
/// and then serves each request from its offset. `PlannedArena` of <tensorpool/planned_arena.hpp>
/// describes it.
///
/// One thread at a time is the owner: it begins and ends iterations and allocates. Any thread may
/// free and read statistics.
typedef struct tensorpool_planned_arena tensorpool_planned_arena;

/// A job of planning, for `executor`.
typedef struct tensorpool_planning_job tensorpool_planning_job;
/// Makes a plan and ends the job. Call it exactly once for each job, on any thread. The arena may
/// have been destroyed.
TENSORPOOL_API void tensorpool_planning_job_run(tensorpool_planning_job* job);

/// The options of a planned arena. Call `tensorpool_planned_arena_options_init` first, which sets
/// `struct_bytes` and every default. Later versions add fields only at the end.
typedef struct tensorpool_planned_arena_options {
    /// The size of the struct, sizeof(tensorpool_planned_arena_options).
    size_t struct_bytes;
    /// The name shown in statistics and messages. It is copied; at most 47 bytes of it are kept.
    const char* name;
    /// The pool for requests that no plan serves; it must outlive the arena. NULL means the global
    /// pool.
    tensorpool_pool* pool;
    /// The number of consecutive iterations with the same requests before the arena plans; at least
    /// 1.
    uint32_t learn_iterations;
    /// The number of consecutive drifting iterations after which the arena learns again; at least
    /// 1.
    uint32_t drift_iterations;
    /// The time limit for planning, in nanoseconds. A first plan is always made.
    uint64_t planning_budget_ns;
    /// An iteration drifts if the pool had to serve more requests than this fraction of the plan's
    /// buffers.
    double tolerated_misses;
    /// How much each call is checked, a tensorpool_checks.
    int32_t checks;
    /// Runs the planning: it calls `tensorpool_planning_job_run(job)` once, on any thread, now or
    /// later. Until then the pool serves. It gets `executor_user` as its second argument. NULL
    /// plans on the thread that ends the iteration.
    void (*executor)(tensorpool_planning_job* job, void* user);
    /// The second argument of `executor`.
    void* executor_user;
    /// The number of iterations that the pool serves before the arena learns.
    uint32_t warm_up_iterations;
} tensorpool_planned_arena_options;

/// Sets the first `struct_bytes` bytes of `options`, which must be
/// sizeof(tensorpool_planned_arena_options), to the defaults. Fails if `options` is NULL or the
/// size is not that of any version of this struct.
TENSORPOOL_API tensorpool_status tensorpool_planned_arena_options_init(
    tensorpool_planned_arena_options* options, size_t struct_bytes);
/// Makes an arena that has no plan yet; NULL means all defaults. Returns NULL for invalid options,
/// and for a field that is set and that this library is too old to know.
TENSORPOOL_API tensorpool_planned_arena* tensorpool_planned_arena_create(
    const tensorpool_planned_arena_options* options);
/// Destroys an arena and releases all its memory, blocks in use included; NULL is ignored. No other
/// call on the arena may be under way.
TENSORPOOL_API void tensorpool_planned_arena_destroy(tensorpool_planned_arena* arena);

/// Begins an iteration and makes the calling thread the owner. Fails inside an iteration.
TENSORPOOL_API tensorpool_status
tensorpool_planned_arena_begin_iteration(tensorpool_planned_arena* arena);
/// Ends the iteration, and plans if enough was learned. Fails outside of an iteration. The owner
/// only.
TENSORPOOL_API tensorpool_status
tensorpool_planned_arena_end_iteration(tensorpool_planned_arena* arena);
/// Allocates at least `bytes` bytes, aligned to 64. The content is undefined. Returns NULL for 0,
/// which is no failure, and if the pool has to serve the request and cannot. The owner only.
TENSORPOOL_API void* tensorpool_planned_arena_allocate(tensorpool_planned_arena* arena,
                                                       size_t bytes);
/// Allocates at least `bytes` bytes, aligned to `alignment` and to 64. The content is undefined.
/// Returns NULL for 0, which is no failure, if the pool has to serve the request and cannot, and
/// unless `alignment` is a power of two. The owner only.
TENSORPOOL_API void* tensorpool_planned_arena_allocate_aligned(tensorpool_planned_arena* arena,
                                                               size_t bytes, size_t alignment);
/// Frees a block; NULL is ignored. A pointer that is not a block of this arena stops the program
/// with a line on stderr. Any thread.
TENSORPOOL_API void tensorpool_planned_arena_deallocate(tensorpool_planned_arena* arena,
                                                        void* block);
/// Drops the plan and learns again, for a loop that is about to change. Fails inside an iteration.
/// The owner only.
TENSORPOOL_API tensorpool_status tensorpool_planned_arena_relearn(tensorpool_planned_arena* arena);

/// Writes the plan and its sequence of requests to a file. Fails if there is no plan, and if the
/// file cannot be written completely. The owner only.
TENSORPOOL_API tensorpool_status
tensorpool_planned_arena_save(const tensorpool_planned_arena* arena, const char* path);
/// Reads a plan from a file and serves it from the next iteration on, in place of the present one.
/// Every value is checked. Fails for a file that is no valid plan, without memory, and inside an
/// iteration. The owner only.
TENSORPOOL_API tensorpool_status tensorpool_planned_arena_load(tensorpool_planned_arena* arena,
                                                               const char* path);
/// Returns a checksum of the plan's sequence of requests; 0 if there is no plan, and for NULL. The
/// owner only.
TENSORPOOL_API uint64_t
tensorpool_planned_arena_sequence_checksum(const tensorpool_planned_arena* arena);

/// What a planned arena does with requests.
enum tensorpool_planned_arena_state {
    /// The pool serves requests, and they are recorded.
    tensorpool_planned_arena_learning = 0,
    /// The caller's executor is making a plan; the pool serves requests.
    tensorpool_planned_arena_planning = 1,
    /// The plan serves requests.
    tensorpool_planned_arena_serving = 2
};

/// The main statistics of a planned arena. `PlannedArenaStatistics` of
/// <tensorpool/planned_arena_statistics.hpp> has all of them. Later versions add fields only at the
/// end.
typedef struct tensorpool_planned_arena_statistics {
    /// The size of the struct, sizeof(tensorpool_planned_arena_statistics), which the caller sets.
    size_t struct_bytes;
    /// What the arena does with requests now, a tensorpool_planned_arena_state.
    uint64_t state;
    /// The number of buffers in the plan, or learned so far.
    uint64_t buffers;
    /// The maximum bytes alive at once in the learned requests.
    uint64_t lower_bound_bytes;
    /// The bytes that the plan needs; 0 without a plan.
    uint64_t plan_peak_bytes;
    /// The memory committed for plans now.
    uint64_t capacity_bytes;
    /// The bytes in buffers of the plan that callers hold.
    uint64_t in_use_bytes;
    /// The bytes in blocks of the pool that callers hold through the arena.
    uint64_t pool_in_use_bytes;
    /// The total number of iterations.
    uint64_t iterations;
    /// The total number of requests that a plan served.
    uint64_t served;
    /// The total number of all other requests, those while learning included.
    uint64_t from_pool;
    /// The total number of plans made or loaded.
    uint64_t plans;
} tensorpool_planned_arena_statistics;

/// Fills in the first `statistics->struct_bytes` bytes of `statistics`. A field that this library
/// is too old to know becomes 0. Fails if `statistics` is NULL or its size is not that of any
/// version of this struct. Any thread.
TENSORPOOL_API tensorpool_status tensorpool_planned_arena_read_statistics(
    const tensorpool_planned_arena* arena, tensorpool_planned_arena_statistics* statistics);
/// Writes all statistics as one JSON object into `buffer`, by the rules of snprintf. Returns the
/// length of the whole text, or a negative number if the call fails. Any thread.
TENSORPOOL_API int tensorpool_planned_arena_report_json(const tensorpool_planned_arena* arena,
                                                        char* buffer, size_t buffer_bytes);

/// One iteration of a planned arena that serves requests of the global pool, or a thread's part in
/// it. `ServeScope` of <tensorpool/serve_scope.hpp> describes it.
typedef struct tensorpool_serve_scope tensorpool_serve_scope;

/// Begins an iteration. Until `tensorpool_serve_end`, the plan serves the requests of at least
/// `min_bytes` bytes that the calling thread makes of the global pool; 0 means 65,537, the minimum.
/// Returns NULL if the call fails: `min_bytes` is smaller, the arena has another pool, or an
/// iteration of the arena is under way.
TENSORPOOL_API tensorpool_serve_scope* tensorpool_serve_begin(tensorpool_planned_arena* arena,
                                                              size_t min_bytes);
/// Lets the same plan serve the calling thread too, until it calls `tensorpool_serve_end` with the
/// result. `scope` is one from `tensorpool_serve_begin`, and must end last. Returns NULL if the
/// call fails.
TENSORPOOL_API tensorpool_serve_scope* tensorpool_serve_join(const tensorpool_serve_scope* scope);
/// Ends the iteration, or the thread's part in it, on the thread that began it. Scopes of one
/// thread end in reverse order. NULL is ignored.
TENSORPOOL_API void tensorpool_serve_end(tensorpool_serve_scope* scope);

#ifdef __cplusplus
}
#endif

#endif
