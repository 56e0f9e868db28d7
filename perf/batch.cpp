/// Question: how long does it take to allocate 1000 blocks and then free them all: in order of
/// allocation, in reverse, or in random order?

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "subject.hpp"
#include "support/barrier.hpp"
#include "support/random.hpp"
#include "support/report.hpp"

namespace {

using perf::Subject;

constexpr std::size_t count = 1000;
enum class Order : std::int64_t { forward, reverse, random };

std::vector<std::uint32_t> positions(Order order) {
    perf::Generator generator(count);
    if (order == Order::random) return perf::shuffled(generator, count);
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    if (order == Order::reverse) std::reverse(numbers.begin(), numbers.end());
    return numbers;
}

void batch(benchmark::State& state) {
    auto bytes = static_cast<std::size_t>(state.range(0));
    const auto order = positions(Order{state.range(1)});
    static std::array<void*, count> blocks;
    for (auto _ : state) {
        for (void*& block : blocks) {
            perf::opaque(bytes);
            block = Subject::allocate(bytes);
        }
        for (const std::uint32_t position : order) {
            perf::opaque(bytes);
            Subject::deallocate(blocks[position], bytes);
        }
    }
    perf::report_step_of(state, count);
}
BENCHMARK(batch)->ArgsProduct({{64, 1 << 10, 16 << 10, 64 << 10}, {0, 1, 2}});

}  // namespace
