/// Question: what do 10,000 blocks of 1 KiB cost, each written at its first byte, then all given
/// back: the first time in a process, when every page is still to come, and again and again after.

#include <array>
#include <cstring>

#include <benchmark/benchmark.h>

#include "subject.hpp"
#include "support/barrier.hpp"
#include "support/report.hpp"
#include "support/resident.hpp"

namespace {

using perf::Subject;

constexpr std::size_t count = 10'000;
std::array<char*, count> blocks = {};

void allocate_write_and_free() {
    std::size_t bytes = 1024;
    for (char*& block : blocks) {
        perf::opaque(bytes);
        block = static_cast<char*>(Subject::allocate(bytes));
        *block = 1;
    }
    for (char* block : blocks) {
        perf::opaque(bytes);
        Subject::deallocate(block, bytes);
    }
}

void report(benchmark::State& state) {
    perf::report_step_of(state, 1);
    state.counters["peak_resident_bytes"] = static_cast<double>(perf::peak_resident_bytes());
}

void fresh(benchmark::State& state) {
    std::memset(blocks.data(), 1, sizeof(blocks));  // the array's own pages are not the question
    for (auto _ : state) allocate_write_and_free();
    report(state);
}
BENCHMARK(fresh)->Iterations(1);

void fresh_again(benchmark::State& state) {
    for (auto _ : state) allocate_write_and_free();
    report(state);
}
BENCHMARK(fresh_again);

}  // namespace
