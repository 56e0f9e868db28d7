#pragma once

/// @file
/// Scopes that count the allocations of a section of code.

#include <memory>
#include <string_view>
#include <utility>

#include <tensorpool/scope_statistics.hpp>

namespace tensorpool {

namespace detail {
struct ScopeFrame;
}

/// Counts what the calling thread allocates from and frees to all pools, from construction to
/// destruction. Memory of arenas and scratches is not counted.
///
/// Scopes nest. They are added up by name over all threads and appear wherever pools are shown.
/// There is room for 64 names (cut to 47 bytes); scopes with further names are added up as `other`.
///
/// Blocks are counted on the thread that frees them. A block that another thread frees stays in the
/// growth of the scope that allocated it. A scope is out of order if it ends before one that began
/// inside it, or on another thread than it began on (coroutines). It is then counted and reported
/// on the timeline as such, and it counts up to its own end on the thread where it began, or
/// nothing if that is another one. `pause` and `resume` avoid that.
///
/// If the file in TENSORPOOL_BUDGETS has a budget for the name, the scope also charges that, like a
/// BudgetScope (pool_options.hpp). It must then end on the thread where it began, or that thread
/// goes on charging.
///
/// Between its beginning and its end a scope costs nothing, except where the thread's magazines are
/// exchanged: some 15 ns for each pool that the thread uses. Beginning and end together take 80 to
/// 110 ns, and 20 ns more for each further pool (perf/scope.cpp).
class TENSORPOOL_API StatisticsScope {
public:
    /// Begins a scope with this name. It never fails: without memory for its own records it counts
    /// nothing.
    explicit StatisticsScope(std::string_view name) noexcept;
    /// Ends the scope and adds its counts to those of its name.
    ~StatisticsScope();
    StatisticsScope(const StatisticsScope&) = delete;
    StatisticsScope& operator=(const StatisticsScope&) = delete;

    /// Stops counting until `resume`, for what goes on later, such as a coroutine that waits.
    /// Scopes inside go on. A budget of the file in TENSORPOOL_BUDGETS is not charged until then; a
    /// BudgetScope inside must have ended. Must be called on the thread that it counts; on another
    /// one, and while it is paused, it does nothing. No system call.
    void pause() noexcept;
    /// Goes on counting what the calling thread does, which may be another one than before. The
    /// scope is the innermost of that thread then. Does nothing if it is not paused.
    void resume() noexcept;

    /// Returns by how much the blocks in use have grown by what it has counted. No other thread may
    /// pause, resume or end it at the same time.
    ScopeGrowth growth() const noexcept;
    /// Returns what this scope has counted so far; `calls` is 0 and `open` 1. The peak is the
    /// highest growth of its own counts. All values are 0 if there was no memory for its records,
    /// and after the thread that it counts has ended. No other thread may pause, resume or end it
    /// at the same time.
    ScopeStatistics statistics() const noexcept;

private:
    detail::ScopeFrame* frame_;
};

/// Calls `function` and returns by how much the calling thread's blocks in use grew in it.
template <class Function>
ScopeGrowth measure_growth(Function&& function) {
    const StatisticsScope scope("measure_growth");
    std::forward<Function>(function)();
    return scope.growth();
}

}  // namespace tensorpool
