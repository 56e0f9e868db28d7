/// Question: what does a block of an arena cost, and a scope of scratch with one block?

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

/// Calls `take(bytes)` `count` times; the compiler knows neither the size nor what became of the
/// block.
template <class Take>
void take_blocks(std::size_t count, std::size_t bytes, Take take) {
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t asked = bytes;
        perf::opaque(asked);
        auto block = take(asked);
        perf::opaque(block);
    }
}

/// ns a block, where everything is released after each 4096. Slices are short: few of them are
/// interrupted then, and the median is one that was not.
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

/// ns that a block takes each of two threads, each on a core of its own.
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

/// Who is asked for blocks; all have 16 MiB that were touched, and promise alignment to 64.
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

void ask_one_thread(const perf::Options& options, perf::Report& report, Subjects& subjects) {
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
            return [resource](std::size_t asked) { return resource->allocate(asked, alignment); };
        };
        Subjects& s = subjects;
        const perf::Turns measured(
            options.rounds, {subject([&s](std::size_t asked) { return s.word.fetch_add(asked); },
                                     [&s] { s.word.store(0); }),
                             subject([&s](std::size_t asked) { return s.shared.allocate(asked); },
                                     [&s] { s.shared.reset(); }),
                             subject([&s](std::size_t asked) { return s.own.allocate(asked); },
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

void ask_two_threads(const perf::Options& options, perf::Report& report, Subjects& subjects) {
    constexpr const char* title = "arena: two threads";
    if (!perf::two_cores()) return report.print_unmeasured(title, "there is one core only");
    const std::size_t blocks = options.quick ? 1000 : 10'000;
    Subjects& s = subjects;
    const auto from_word = [&s](std::size_t asked) { return s.word.fetch_add(asked); };
    const auto from_shared = [&s](std::size_t asked) { return s.shared.allocate(asked); };
    const auto from_locked = [&s](std::size_t asked) { return s.from_locked(asked); };
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
    const auto figure = [&](std::size_t i) {
        return text(measured.median(i), 1) + " (" + text(perf::quantile(measured.of(i), 0.25), 0) +
               " to " + text(perf::quantile(measured.of(i), 0.75), 0) + ")";
    };
    report.print(title,
                 {{"64 B, ns a block on each thread (middle half)", "`lock xadd`", "shared arena",
                   "monotonic, mutex", "arena of that"},
                  {"one thread", figure(0), figure(1), figure(2), text(measured.ratio(1, 2))},
                  {"two threads", figure(3), figure(4), figure(5),
                   report.judge(measured.ratio(4, 5), 0.2)}});
}

/// A block of 1000 B that lasts no longer than its call.
void ask_scratch(const perf::Options& options, perf::Report& report) {
    const std::size_t turns = options.quick ? 1 : 8;
    const auto subject = [&](auto take) -> perf::Subject {
        return [=] { return one_thread(turns, 1000, take, [] {}); };
    };
    // `perf::opaque` within the scope: the block is used there.
    const perf::Turns measured(options.rounds,
                               {subject([](std::size_t asked) {
                                    const ScratchScope scope;
                                    void* block = tensorpool::Scratch::local().allocate(asked);
                                    perf::opaque(block);
                                    return asked;
                                }),
                                subject([](std::size_t asked) {
                                    const ScratchScope scope("matmul");
                                    void* block = tensorpool::Scratch::local().allocate(asked);
                                    perf::opaque(block);
                                    return asked;
                                }),
                                subject([](std::size_t asked) {
                                    std::array<std::byte, 2048> buffer;
                                    std::pmr::monotonic_buffer_resource resource(buffer.data(),
                                                                                 buffer.size());
                                    void* block = resource.allocate(asked, alignment);
                                    perf::opaque(block);
                                    return asked;
                                }),
                                subject([](std::size_t asked) {
                                    auto& pool = tensorpool::get_global_memory_pool();
                                    void* block = pool.allocate(asked);
                                    perf::opaque(block);
                                    pool.deallocate(block, asked);
                                    return asked;
                                }),
                                subject([](std::size_t asked) {
                                    void* block = std::malloc(asked);
                                    perf::opaque(block);
                                    std::free(block);
                                    return asked;
                                })});
    report.print("scratch: a scope with one block of 1000 B",
                 {{"ns", "scope", "scope with a name", "monotonic over the stack", "pool's pair",
                   "malloc, free"},
                  {"one thread", report.judge(measured.median(0), 4.0), text(measured.median(1)),
                   text(measured.median(2)), text(measured.median(3)), text(measured.median(4))}});
}

/// Who makes an arena for each piece of work pays this; nothing is allocated from it.
void ask_making(const perf::Options& options, perf::Report& report) {
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
    report.print("arena: made and destroyed, the first in the process apart",
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
    ask_one_thread(options, report, subjects);
    ask_two_threads(options, report, subjects);
    ask_scratch(options, report);
    ask_making(options, report);
    return report.status();
}
