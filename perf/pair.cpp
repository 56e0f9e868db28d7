/// Question: how long does it take to allocate one block and free it again, repeatedly, on one
/// thread?

#include <benchmark/benchmark.h>

#include "subject.hpp"
#include "support/barrier.hpp"
#include "support/report.hpp"

namespace {

using perf::Subject;

void pair(benchmark::State& state) {
    auto bytes = static_cast<std::size_t>(state.range(0));
    for (auto _ : state) {
        perf::opaque(bytes);
        void* block = Subject::allocate(bytes);
        perf::opaque(block);
        perf::opaque(bytes);
        Subject::deallocate(block, bytes);
    }
    perf::report_step_of(state, 1);
}
BENCHMARK(pair)->RangeMultiplier(2)->Range(64, 64 << 10);

/// Measures a pair whose size the compiler sees, as in code that makes objects of one type.
void pair_of_constant_size(benchmark::State& state) {
    constexpr std::size_t bytes = 1024;
    for (auto _ : state) {
        void* block = Subject::allocate(bytes);
        perf::opaque(block);
        Subject::deallocate(block, bytes);
    }
    perf::report_step_of(state, 1);
}
BENCHMARK(pair_of_constant_size);

}  // namespace
