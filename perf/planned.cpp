/// Question: how long do a request that a plan serves and its free take?
///
/// All subjects serve the same calls, those of a training step. In the forward pass each layer
/// requests an activation, which the backward pass frees. In both passes it also requests a buffer
/// that it frees at once. Nothing is written into the blocks.

#include <cstddef>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/planned_arena.hpp>

#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/random.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::Arena;
using tensorpool::MemoryPool;
using tensorpool::PlannedArena;

/// A request if `bytes` is not 0, otherwise a free.
struct Call {
    std::size_t buffer;
    std::size_t bytes;
};

struct Step {
    std::vector<Call> calls;
    std::vector<std::size_t> bytes;  // by buffer

    void request(std::size_t size) {
        calls.push_back({bytes.size(), size});
        bytes.push_back(size);
    }
    void free(std::size_t buffer) { calls.push_back({buffer, 0}); }
};

Step training_step(std::size_t layers, std::size_t min_bytes, std::size_t max_bytes) {
    perf::Generator generator(1);
    Step step;
    std::vector<std::size_t> activations;
    const auto request = [&] { step.request(perf::log_uniform(generator, min_bytes, max_bytes)); };
    const auto request_and_free = [&] {
        request();
        step.free(step.bytes.size() - 1);
    };
    for (std::size_t layer = 0; layer < layers; ++layer) {
        request();
        activations.push_back(step.bytes.size() - 1);
        request_and_free();
    }
    for (; !activations.empty(); activations.pop_back()) {
        request_and_free();
        step.free(activations.back());
    }
    return step;
}

/// Returns nanoseconds per pair of calls.
template <class Request, class Free, class Begin, class End>
double run(const Step& step, std::size_t times, Begin begin, End end, Request request, Free free) {
    std::vector<void*> held(step.bytes.size());
    const double seconds = perf::seconds_of([&] {
        for (std::size_t i = 0; i < times; ++i) {
            begin();
            for (const Call& call : step.calls) {
                std::size_t bytes = call.bytes;
                perf::opaque(bytes);
                if (bytes != 0) {
                    held[call.buffer] = request(bytes);
                } else {
                    free(held[call.buffer], step.bytes[call.buffer]);
                }
            }
            end();
        }
    });
    return seconds * 1e9 / static_cast<double>(times * step.bytes.size());
}

void nothing() {}
void keep(void*, std::size_t) {}

/// Not inlined, so that callgrind's --toggle-collect can count the instructions of this function.
[[gnu::noinline]] double run_planned(PlannedArena& arena, const Step& step, std::size_t times) {
    return run(
        step, times, [&] { arena.begin_iteration(); }, [&] { arena.end_iteration(); },
        [&](std::size_t bytes) { return arena.allocate(bytes); },
        [&](void* p, std::size_t) { arena.deallocate(p); });
}

/// A request is one addition and a free does nothing: the least work of any arena.
[[gnu::noinline]] double run_bump(std::byte* base, const Step& step, std::size_t times) {
    std::byte* top = base;
    return run(
        step, times, [&] { top = base; }, nothing,
        [&](std::size_t bytes) {
            void* block = top;
            top += (bytes + 63) & ~std::size_t{63};
            perf::opaque(top);
            return block;
        },
        keep);
}

[[gnu::noinline]] double run_pool(MemoryPool& pool, const Step& step, std::size_t times) {
    return run(
        step, times, nothing, nothing, [&](std::size_t bytes) { return pool.allocate(bytes); },
        [&](void* p, std::size_t bytes) { pool.deallocate(p, bytes); });
}

double run_arena(Arena& arena, const Step& step, std::size_t times) {
    return run(
        step, times, nothing, [&] { arena.reset(); },
        [&](std::size_t bytes) { return arena.allocate(bytes); }, keep);
}

double run_malloc(const Step& step, std::size_t times) {
    return run(
        step, times, nothing, nothing,
        [](std::size_t bytes) {
            void* block = std::malloc(bytes);
            perf::opaque(block);
            return block;
        },
        [](void* p, std::size_t) { std::free(p); });
}

void measure(const perf::Options& options, perf::Report& report, const char* name,
             std::size_t min_bytes, std::size_t max_bytes, std::vector<perf::Cells>& rows) {
    const Step step = training_step(256, min_bytes, max_bytes);
    const std::size_t times = options.quick ? 4 : 64;
    MemoryPool pool;
    PlannedArena planned({.pool = &pool, .checks = tensorpool::Checks::off});
    Arena arena({.sharing = tensorpool::Sharing::one_thread});
    std::byte* nowhere = reinterpret_cast<std::byte*>(std::size_t{1} << 20);
    perf::opaque(nowhere);
    run_planned(planned, step, 1);
    const perf::Turns measured(options.rounds, {[&] { return run_bump(nowhere, step, times); },
                                                [&] { return run_planned(planned, step, times); },
                                                [&] { return run_arena(arena, step, times); },
                                                [&] { return run_pool(pool, step, times); },
                                                [&] { return run_malloc(step, times); }});
    rows.push_back({name, text(measured.median(0)), report.judge(measured.median(1), 10.0),
                    text(measured.median(2)), text(measured.median(3)), text(measured.median(4)),
                    text(measured.ratio(1, 3))});
    const tensorpool::PlannedArenaStatistics statistics = planned.statistics();
    if (statistics.from_pool != statistics.buffers) {
        report.print_unmeasured(name, "the plan did not serve all requests");
    }
}

/// Measures requests and frees when another thread frees all blocks of an iteration.
void measure_other_thread(const perf::Options& options, perf::Report& report) {
    constexpr const char* title = "planned: freed by another thread";
    if (!perf::two_cores()) return report.print_unmeasured(title, "there is one core only");
    const Step step = training_step(256, 64, 16 << 10);
    PlannedArena arena({.checks = tensorpool::Checks::off});
    std::vector<void*> held(step.bytes.size());
    double request_s = 0, free_s = 0;
    const auto turn = [&] {
        arena.begin_iteration();
        request_s = perf::seconds_of([&] {
            for (std::size_t i = 0; i < held.size(); ++i) held[i] = arena.allocate(step.bytes[i]);
        });
        std::thread other([&] {
            perf::stay_on_core(1);
            free_s = perf::seconds_of([&] {
                for (void* p : held) arena.deallocate(p);
            });
        });
        other.join();
        arena.end_iteration();
    };
    turn();
    const auto count = static_cast<double>(held.size());
    const perf::Turns measured(options.rounds, {[&] {
                                                    turn();
                                                    return request_s * 1e9 / count;
                                                },
                                                [&] {
                                                    turn();
                                                    return free_s * 1e9 / count;
                                                }});
    report.print(title, {{"ns", "request", "free"},
                         {"64 B to 16 KiB", text(measured.median(0)), text(measured.median(1))}});
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 51);
    perf::Report report(options);
    perf::stay_on_core(0);
    std::vector<perf::Cells> rows = {{"ns of a request and its free", "pointer bump",
                                      "planned arena", "arena", "pool", "malloc",
                                      "planned of pool"}};
    measure(options, report, "64 B to 16 KiB", 64, 16 << 10, rows);
    measure(options, report, "64 KiB to 4 MiB", 64 << 10, 4 << 20, rows);
    report.print("planned: a training step of 768 requests", rows);
    measure_other_thread(options, report);
    return report.status();
}
