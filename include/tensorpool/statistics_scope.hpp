#pragma once

/// @file
/// What a stretch of code allocates.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <tensorpool/export.hpp>
#include <tensorpool/scope_statistics.hpp>

namespace tensorpool {

namespace detail {
struct ScopeFrame;
}

/// Counts what the calling thread allocates from and gives back to all pools, from when it is made
/// until it goes; what arenas and scratches hand out is not counted. Scopes nest. They are added up
/// by name over all threads and stand wherever pools are shown; there is room for 64 names (cut to
/// 47 bytes), what has others is added up as `other`.
///
/// Blocks are counted on the thread that frees them: one that another thread frees stays in the
/// growth of the scope that allocated it. A scope that ends before one that began inside it, or on
/// another thread than it began on (coroutines), is counted as out of order, told on the timeline,
/// and counts up to its own end on the thread where it began, or nothing where that is another one.
///
/// Between beginning and end it costs nothing but where the thread's magazines are exchanged: there
/// some 15 ns for each pool that the thread uses. The two take 80 to 110 ns together, and 20 ns
/// more for each further pool (perf/scope.cpp).
class TENSORPOOL_API StatisticsScope {
public:
    /// Never fails: without memory for its own records it counts nothing.
    explicit StatisticsScope(std::string_view name) noexcept;
    ~StatisticsScope();
    StatisticsScope(const StatisticsScope&) = delete;
    StatisticsScope& operator=(const StatisticsScope&) = delete;

    /// By how much the blocks in use of this thread have grown since the scope began.
    ScopeGrowth growth() const noexcept;
    /// What this scope has counted so far, on the thread where it began: `calls` is 0 and `open` 1.
    /// All 0 without memory for its records, and once its thread has ended.
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
