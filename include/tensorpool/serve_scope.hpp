#pragma once

/// @file
/// Serves a loop's tensors from a plan without a change to the code that makes them. Sizes are in
/// bytes.

#include <tensorpool/planned_arena.hpp>

namespace tensorpool {

class ServeScope;

/// Serves the larger requests that the calling thread makes of the global pool from a planned
/// arena. One scope is one iteration:
///
///     PlannedArena step;
///     for (const Batch& batch : batches) {
///         const ServeScope serve(step);
///         train(batch);  // tensors of any library that allocates from the global pool
///     }
///
/// While the arena learns, the pool serves all requests, and the arena records the larger ones.
/// Once it has a plan, it serves them from memory that the plan borrows from the pool, and the pool
/// gives the rest of its free memory back. Requests that differ from the plan go to the pool. A
/// block that is freed late keeps its bytes, as `PlannedArena` describes. If the first iteration
/// makes what later ones keep, PlannedArenaOptions::warm_up_iterations leaves it out. Between
/// iterations, the memory returns to the pool if other requests need it.
///
/// Any thread frees the blocks like all blocks of the global pool: with `deallocate`, or with
/// `free` if the pool serves malloc. Blocks outlive the scope and the arena; the plan's memory
/// stays until its last block is freed. Requests in another BudgetScope than the one in which the
/// iteration began stay with the pool, unless the arena has a budget of its own. `owns`,
/// `usable_size` and `reallocate` of the global pool accept them too. A block of the plan is
/// counted in the arena only.
///
/// Requests of other threads stay with the pool, unless they join the scope (JoinServeScope).
/// Scopes of a thread nest, and end in reverse order; the innermost one serves. `pause` and
/// `resume` take a scope out of that order. While a scope exists, the arena's own functions may
/// only free and read statistics, and the end of the arena stops the program, except in `exit`.
class TENSORPOOL_API ServeScope {
public:
    /// Begins an iteration of `arena`. From now on, it serves the calling thread's requests of at
    /// least `min_bytes` bytes. Throws std::invalid_argument if `min_bytes` is not above 64 KiB, or
    /// if the arena's pool is not the global one; std::logic_error inside an iteration.
    explicit ServeScope(PlannedArena& arena, std::size_t min_bytes = default_min_bytes);
    /// Ends the iteration. Must run on the thread that it serves, or on any thread while it is
    /// paused; no joined thread may be inside a request.
    ~ServeScope();
    ServeScope(const ServeScope&) = delete;
    ServeScope& operator=(const ServeScope&) = delete;

    /// Serves its thread no longer, until `resume`, for what goes on later, such as a coroutine
    /// that waits. The iteration and joined threads go on. Must be called on the thread that it
    /// serves, whose innermost scope it must be. Does nothing while it is paused. No system call.
    void pause() noexcept;
    /// Serves the calling thread, which may be another one than before. The scope is the innermost
    /// of that thread then. Does nothing if it is not paused.
    void resume() noexcept;

    /// The smallest request that is not for a bucket of the pool.
    static constexpr std::size_t default_min_bytes = (std::size_t{64} << 10) + 1;

private:
    friend class JoinServeScope;
    class Serving;
    std::unique_ptr<Serving> serving_;
};

/// Joins the calling thread to another thread's scope: its larger requests are served from the same
/// plan while this object exists.
///
/// Requests are identified by their order, across all threads of a scope. So it helps if the order
/// is the same in each iteration, as with a thread that computes the backward pass while the first
/// thread waits. Threads that compete, such as those of a parallel loop, should stay with the pool.
/// Python's `planned(name).join()` is made of it.
class TENSORPOOL_API JoinServeScope {
public:
    /// Joins the scope, which must outlive this object.
    explicit JoinServeScope(const ServeScope& scope);
    /// Must run on the thread that created the object.
    ~JoinServeScope();
    JoinServeScope(const JoinServeScope&) = delete;
    JoinServeScope& operator=(const JoinServeScope&) = delete;

private:
    std::unique_ptr<ServeScope::Serving> serving_;
};

}  // namespace tensorpool
