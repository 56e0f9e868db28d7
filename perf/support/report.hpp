#pragma once

#include <benchmark/benchmark.h>

namespace perf {

/// Reports the time of one step in the counter `seconds`, which perf/compare reads. Each iteration
/// makes `count` equal steps.
inline void report_step_of(benchmark::State& state, double count) {
    using benchmark::Counter;
    state.counters["seconds"] =
        Counter(count, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

}  // namespace perf
