/// Question: how long does an arena take to allocate a block, and how long does a scratch scope
/// with one block take?

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory_resource>
#include <mutex>
#include <thread>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/memory_resource.hpp>
#include <tensorpool/scratch.hpp>

#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::Arena;
using tensorpool::ScratchScope;
using tensorpool::Sharing;

constexpr std::size_t buffer_bytes = std::size_t{16} << 20;
constexpr std::size_t alignment = 64;

/// Calls `take(bytes)` `count` times. The compiler cannot see the size or the use of the block.
template <class Take>
void take_blocks(std::size_t count, std::size_t bytes, Take take) {
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t requested = bytes;
        perf::opaque(requested);
        auto block = take(requested);
        perf::opaque(block);
    }
}

/// Returns nanoseconds per block; everything is released after each 4096 blocks. Slices are short,
/// so that few of them are interrupted and the median is a slice without interruption.
template <class Take, class Release>
double one_thread(std::size_t turns, std::size_t bytes, Take take, Release release) {
    constexpr std::size_t blocks = 4096;
    const double seconds = perf::seconds_of([&] {
        for (std::size_t turn = 0; turn < turns; ++turn) {
            take_blocks(blocks, bytes, take);
            release();
        }
    });
    return seconds * 1e9 / static_cast<double>(turns * blocks);
}

/// Returns nanoseconds per block on each of two threads; each thread has a core of its own.
template <class Take>
double two_threads(std::size_t blocks, std::size_t bytes, Take take) {
    std::atomic<int> ready = 0;
    double begin[2], end[2];
    const auto run = [&](int index) {
        perf::stay_on_core(index);
        ready.fetch_add(1);
        for (int spins = 0; ready.load() < 2; ++spins) {
            if (spins > 100'000) std::this_thread::yield();
        }
        begin[index] = perf::now_s();
        take_blocks(blocks, bytes, take);
        end[index] = perf::now_s();
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    const double seconds = std::max(end[0], end[1]) - std::min(begin[0], begin[1]);
    return seconds * 1e9 / static_cast<double>(blocks);
}

/// The allocators that are compared. Each has 16 MiB that were touched before, and aligns to 64
/// bytes.
class Subjects {
public:
    Subjects() { shared.reserve(buffer_bytes), own.reserve(buffer_bytes); }

    void* from_locked(std::size_t bytes) {
        const std::lock_guard guard(mutex);
        return monotonic.allocate(bytes, alignment);
    }
    void release_all() {
        word.store(0);
        shared.reset(), own.reset();
        monotonic.release();
    }

    alignas(64) std::atomic<std::size_t> word = 0;
    alignas(64) std::mutex mutex;
    std::vector<std::byte> buffer = std::vector<std::byte>(buffer_bytes);
    std::pmr::monotonic_buffer_resource monotonic{buffer.data(), buffer.size(),
                                                  std::pmr::null_memory_resource()};
    Arena shared;
    Arena own{{.sharing = Sharing::one_thread}};
    tensorpool::ArenaResource own_resource{own};
};

void measure_one_thread(const perf::Options& options, perf::Report& report, Subjects& subjects) {
    std::vector<perf::Cells> rows = {{"one thread, ns a block", "`lock xadd`", "shared arena",
                                      "own arena", "monotonic", "own through pmr",
                                      "own of monotonic"}};
    const std::size_t turns = options.quick ? 1 : 8;
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1024}}) {
        const auto subject = [&](auto take, auto release) -> perf::Subject {
            return [=] { return one_thread(turns, bytes, take, release); };
        };
        const auto through = [&](std::pmr::memory_resource* resource) {
            perf::opaque(resource);
            return [resource](std::size_t requested) {
                return resource->allocate(requested, alignment);
            };
        };
        Subjects& s = subjects;
        const perf::Turns measured(
            options.rounds,
            {subject([&s](std::size_t requested) { return s.word.fetch_add(requested); },
                     [&s] { s.word.store(0); }),
             subject([&s](std::size_t requested) { return s.shared.allocate(requested); },
                     [&s] { s.shared.reset(); }),
             subject([&s](std::size_t requested) { return s.own.allocate(requested); },
                     [&s] { s.own.reset(); }),
             subject(through(&s.monotonic), [&s] { s.monotonic.release(); }),
             subject(through(&s.own_resource), [&s] { s.own.reset(); })});
        rows.push_back({bytes == 64 ? "64 B" : "1 KiB", text(measured.median(0)),
                        report.judge(measured.median(1), 6.0), text(measured.median(2)),
                        text(measured.median(3)), text(measured.median(4)),
                        report.judge(measured.ratio(2, 3), 1.2)});
    }
    report.print("arena: one thread", rows);
}

void measure_two_threads(const perf::Options& options, perf::Report& report, Subjects& subjects) {
    constexpr const char* title = "arena: two threads";
    if (!perf::two_cores()) return report.print_unmeasured(title, "there is one core only");
    const std::size_t blocks = options.quick ? 1000 : 10'000;
    Subjects& s = subjects;
    const auto from_word = [&s](std::size_t requested) { return s.word.fetch_add(requested); };
    const auto from_shared = [&s](std::size_t requested) { return s.shared.allocate(requested); };
    const auto from_locked = [&s](std::size_t requested) { return s.from_locked(requested); };
    const auto alone = [&](auto take) -> perf::Subject {
        return [=, &s] {
            s.release_all();
            return one_thread(blocks / 4096 + 1, alignment, take, [&s] { s.release_all(); });
        };
    };
    const auto both = [&](auto take) -> perf::Subject {
        return [=, &s] {
            s.release_all();
            return two_threads(blocks, alignment, take);
        };
    };
    const perf::Turns measured(
        options.rounds, {alone(from_word), alone(from_shared), alone(from_locked), both(from_word),
                         both(from_shared), both(from_locked)});
    const auto cell = [&](std::size_t i) {
        return text(measured.median(i), 1) + " (" + text(perf::quantile(measured.of(i), 0.25), 0) +
               " to " + text(perf::quantile(measured.of(i), 0.75), 0) + ")";
    };
    report.print(title, {{"64 B, ns a block on each thread (middle half)", "`lock xadd`",
                          "shared arena", "monotonic, mutex", "arena of monotonic"},
                         {"one thread", cell(0), cell(1), cell(2), text(measured.ratio(1, 2))},
                         {"two threads", cell(3), cell(4), cell(5),
                          report.judge(measured.ratio(4, 5), 0.2)}});
}

/// Measures a block of 1000 B that is freed within the same call.
void measure_scratch(const perf::Options& options, perf::Report& report) {
    const std::size_t turns = options.quick ? 1 : 8;
    const auto subject = [&](auto take) -> perf::Subject {
        return [=] { return one_thread(turns, 1000, take, [] {}); };
    };
    // `perf::opaque` stands inside the scope, because the block is used there.
    const perf::Turns measured(options.rounds,
                               {subject([](std::size_t requested) {
                                    const ScratchScope scope;
                                    void* block = tensorpool::Scratch::local().allocate(requested);
                                    perf::opaque(block);
                                    return requested;
                                }),
                                subject([](std::size_t requested) {
                                    const ScratchScope scope("matmul");
                                    void* block = tensorpool::Scratch::local().allocate(requested);
                                    perf::opaque(block);
                                    return requested;
                                }),
                                subject([](std::size_t requested) {
                                    std::array<std::byte, 2048> buffer;
                                    std::pmr::monotonic_buffer_resource resource(buffer.data(),
                                                                                 buffer.size());
                                    void* block = resource.allocate(requested, alignment);
                                    perf::opaque(block);
                                    return requested;
                                }),
                                subject([](std::size_t requested) {
                                    auto& pool = tensorpool::get_global_memory_pool();
                                    void* block = pool.allocate(requested);
                                    perf::opaque(block);
                                    pool.deallocate(block, requested);
                                    return requested;
                                }),
                                subject([](std::size_t requested) {
                                    void* block = std::malloc(requested);
                                    perf::opaque(block);
                                    std::free(block);
                                    return requested;
                                })});
    report.print(
        "scratch: a scope with one block of 1000 B",
        {{"ns", "scope", "scope with a name", "monotonic over the stack", "pool", "malloc, free"},
         {"one thread", report.judge(measured.median(0), 4.0), text(measured.median(1)),
          text(measured.median(2)), text(measured.median(3)), text(measured.median(4))}});
}

/// Measures what a program pays that makes an arena for each piece of work. Nothing is allocated
/// from these arenas.
void measure_construction(const perf::Options& options, perf::Report& report) {
    const auto subject = [](auto make) -> perf::Subject {
        return [=] {
            constexpr int arenas = 8;
            const double seconds = perf::seconds_of([&] {
                for (int i = 0; i < arenas; ++i) {
                    Arena arena(make());
                    Arena* made = &arena;
                    perf::opaque(made);
                }
            });
            return seconds * 1e6 / arenas;
        };
    };
    std::vector<std::byte> buffer(4096);
    const auto limited = [] { return Arena({.max_capacity = std::size_t{1} << 30}); };
    const perf::Turns measured(options.rounds, {subject([] { return Arena(); }), subject(limited),
                                                subject([&] { return Arena::over(buffer); })});
    report.print("arena: construction and destruction, without the first arena of the process",
                 {{"µs", "default", "with max_capacity", "over a buffer"},
                  {"one thread", text(measured.median(0), 1), text(measured.median(1), 1),
                   text(measured.median(2), 1)}});
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 101);
    perf::Report report(options);
    perf::stay_on_core(0);
    Subjects subjects;
    measure_one_thread(options, report, subjects);
    measure_two_threads(options, report, subjects);
    measure_scratch(options, report);
    measure_construction(options, report);
    return report.status();
}
