#pragma once

#include <benchmark/benchmark.h>

namespace perf {

/// Reports the time of one of `count` equal steps that each iteration makes, in the counter
/// `seconds`, which is what perf/compare reads.
inline void report_step_of(benchmark::State& state, double count) {
    using benchmark::Counter;
    state.counters["seconds"] =
        Counter(count, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

}  // namespace perf
