/// Question: how long does it take to allocate 10,000 blocks of 1 KiB, write the first byte of each
/// and free them all? Measured the first time in a process, when every page faults, and repeatedly
/// after that. Then 256 MiB of such blocks in the same process; all but the first 10 MiB of it is
/// memory that the process has not used before.

#include <array>
#include <cstring>
#include <span>

#include <benchmark/benchmark.h>

#include "subject.hpp"
#include "support/barrier.hpp"
#include "support/report.hpp"
#include "support/resident.hpp"

namespace {

using perf::Subject;

constexpr std::size_t count = 10'000;
constexpr std::size_t grown_count = 256 * 1024;
std::array<char*, grown_count> all_blocks = {};
constexpr std::span<char*> blocks(all_blocks.data(), count);

void allocate_write_and_free(std::span<char*> these) {
    std::size_t bytes = 1024;
    for (char*& block : these) {
        perf::opaque(bytes);
        block = static_cast<char*>(Subject::allocate(bytes));
        *block = 1;
    }
    for (char* block : these) {
        perf::opaque(bytes);
        Subject::deallocate(block, bytes);
    }
}

void report(benchmark::State& state) {
    perf::report_step_of(state, 1);
    state.counters["peak_resident_bytes"] = static_cast<double>(perf::peak_resident_bytes());
}

void fresh(benchmark::State& state) {
    // Page faults of the array itself are not measured.
    std::memset(blocks.data(), 1, blocks.size_bytes());
    for (auto _ : state) allocate_write_and_free(blocks);
    report(state);
}
BENCHMARK(fresh)->Iterations(1);

void fresh_again(benchmark::State& state) {
    for (auto _ : state) allocate_write_and_free(blocks);
    report(state);
}
BENCHMARK(fresh_again);

/// Whether `Allocator` can hold so many blocks at once; the floor cannot hold as many.
template <class Allocator>
consteval bool holds(std::size_t blocks_at_once) {
    if constexpr (requires { Allocator::max_blocks; }) {
        return blocks_at_once <= Allocator::max_blocks;
    }
    return true;
}

void fresh_growth(benchmark::State& state) {
    if (!holds<Subject>(grown_count))
        return state.SkipWithError("cannot hold that many blocks at once");
    std::memset(all_blocks.data(), 1, sizeof(all_blocks));
    for (auto _ : state) allocate_write_and_free(all_blocks);
    report(state);
}
BENCHMARK(fresh_growth)->Iterations(1);

}  // namespace
