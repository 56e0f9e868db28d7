/// Question: how long does it take to replace a random block of 4096 by one of another size? Sizes
/// are log-uniform from 64 B to 64 KiB. Measured on one thread, and while a second thread does the
/// same with its own blocks.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "subject.hpp"
#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/random.hpp"
#include "support/report.hpp"

namespace {

using perf::Subject;

constexpr std::size_t buffer_count = 4096;
constexpr std::size_t step_count = 16384;

struct Step {
    std::uint32_t buffer;
    std::uint32_t bytes;
};
struct Buffer {
    void* block = nullptr;
    std::size_t bytes = 0;
};

class Table {
public:
    explicit Table(std::uint64_t seed) : buffers_(buffer_count) {
        perf::Generator generator(seed);
        for (Buffer& buffer : buffers_) buffer = allocated(draw(generator));
        for (std::size_t i = 0; i < step_count; ++i) {
            const auto buffer = static_cast<std::uint32_t>(generator() % buffer_count);
            steps_.push_back({buffer, static_cast<std::uint32_t>(draw(generator))});
        }
    }
    ~Table() {
        for (const Buffer& buffer : buffers_) Subject::deallocate(buffer.block, buffer.bytes);
    }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    void replace_all() {
        for (const Step& step : steps_) {
            Buffer& buffer = buffers_[step.buffer];
            Subject::deallocate(buffer.block, buffer.bytes);
            buffer = allocated(step.bytes);
        }
    }

private:
    static std::size_t draw(perf::Generator& generator) {
        return perf::log_uniform(generator, 64, std::size_t{64} << 10);
    }
    static Buffer allocated(std::size_t bytes) {
        perf::opaque(bytes);
        return {Subject::allocate(bytes), bytes};
    }

    std::vector<Buffer> buffers_;
    std::vector<Step> steps_;
};

void replace(benchmark::State& state) {
    Table table(1);
    table.replace_all();
    for (auto _ : state) table.replace_all();
    perf::report_step_of(state, step_count);
}
BENCHMARK(replace);

void replace_beside_another_thread(benchmark::State& state) {
    if (!perf::two_cores()) return state.SkipWithError("needs two cores");
    std::atomic<bool> started = false, stop = false;
    std::thread other([&] {
        perf::stay_on_core(1);
        Table table(2);
        for (; !stop.load(std::memory_order_relaxed); started = true) table.replace_all();
    });
    perf::stay_on_core(0);
    Table table(1);
    table.replace_all();
    while (!started) std::this_thread::yield();
    for (auto _ : state) table.replace_all();
    stop = true;
    other.join();
    perf::report_step_of(state, step_count);
}
BENCHMARK(replace_beside_another_thread);

}  // namespace
