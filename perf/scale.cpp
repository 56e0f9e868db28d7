/// Two questions. How long do the start and end of a thread, and `statistics()`, take while
/// thousands of threads that used the pool are alive? And how much could contention add to a call?
/// The second answer is the number of locked operations in a call (counted instruction by
/// instruction) times the cost of one on a word that all processors write.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

#ifdef __x86_64__
#include "../tests/support/living_threads.hpp"
#include "../tests/support/shared_words_linux.hpp"
#endif

namespace {

using perf::text;
using tensorpool::MemoryPool;

/// Makes a pair of each bucket, so that the thread has magazines for all of them.
void use(MemoryPool& pool) {
    for (std::size_t bytes = 64; bytes <= 64 * 1024; bytes *= 2) {
        pool.deallocate(pool.allocate(bytes), bytes);
    }
}

/// Returns the microseconds from the start of a thread to its end.
template <class Work>
double us_of_a_thread(Work work) {
    constexpr int threads = 20;
    const double seconds = perf::seconds_of([&] {
        for (int i = 0; i < threads; ++i) std::thread(work).join();
    });
    return seconds * 1e6 / threads;
}

perf::Cells with_idle_threads(std::size_t threads, const perf::Options& options,
                              perf::Report& report) {
    MemoryPool pool;
    const tensorpool::testing::LivingThreads idle(threads, [&] { use(pool); });
    const perf::Turns measured(
        options.rounds,
        {[] { return us_of_a_thread([] {}); },
         [&] { return us_of_a_thread([&] { pool.deallocate(pool.allocate(1000), 1000); }); },
         [&] { return perf::seconds_of([&] { (void)pool.statistics(); }) * 1e6; }});
    return {std::to_string(threads), text(measured.median(0), 1),
            report.judge(measured.median(1) - measured.median(0), 10.0, 1),
            report.judge(measured.median(2), 1000.0, 0)};
}

/// Returns the nanoseconds of one locked addition while `threads` threads, each on a core of its
/// own, add to the same word.
double ns_of_a_locked_operation(unsigned threads, const perf::Options& options) {
    const int count = options.quick ? 10'000 : 2'000'000;
    std::atomic<std::uint64_t> word = 0;
    std::barrier<> begin(threads + 1);
    std::vector<std::thread> others;
    std::vector<double> seconds(threads);
    for (unsigned i = 0; i < threads; ++i) {
        others.emplace_back([&, i] {
            perf::stay_on_core(i);
            begin.arrive_and_wait();
            seconds[i] = perf::cpu_seconds_of([&] {
                for (int done = 0; done < count; ++done) word.fetch_add(1);
            });
        });
    }
    begin.arrive_and_wait();
    for (std::thread& thread : others) thread.join();
    return *std::max_element(seconds.begin(), seconds.end()) * 1e9 / count;
}

#ifdef __x86_64__
/// Returns the maximum number of locked operations over `calls` calls of `call`. Each call gets the
/// result of `before`, which is not counted.
unsigned locked_operations(const std::function<void*()>& before,
                           const std::function<void(void*)>& call, int calls) {
    unsigned maximum = 0;
    for (int i = 0; i < calls; ++i) {
        void* const block = before();
        maximum = std::max(maximum, tensorpool::testing::count_call([&] { call(block); }).locked);
    }
    return maximum;
}

/// The nanoseconds of a locked operation, on a word of the thread's own and on one that all
/// processors write.
struct LockedCosts {
    unsigned processors;
    double alone;
    double contended;
};

LockedCosts measure_costs(const perf::Options& options) {
    const unsigned processors = std::max(2U, std::thread::hardware_concurrency());
    const perf::Turns measured(options.rounds,
                               {[&] { return ns_of_a_locked_operation(1, options); },
                                [&] { return ns_of_a_locked_operation(processors, options); }});
    // A high quantile, because contention is lower in rounds in which the threads did not overlap.
    return {processors, measured.median(0), perf::quantile(measured.of(1), 0.9)};
}

void print_contention(const LockedCosts& costs, perf::Report& report) {
    std::vector<perf::Cells> rows = {
        {"call", "locked operations", "alone, ns",
         "all on words that " + std::to_string(costs.processors) + " processors write, ns"}};
    const auto add = [&](const char* name, unsigned locked) {
        rows.push_back({name, std::to_string(locked), text(locked * costs.alone, 0),
                        text(locked * costs.contended, 0)});
    };
    add("one locked operation", 1);

    // A second thread exists, because the C library skips locked operations in processes with one.
    std::latch over(1);
    std::thread second([&] { over.wait(); });
    MemoryPool pool({.retain = {.milliseconds = 1'000'000'000}});
    const auto nothing = [] { return static_cast<void*>(nullptr); };
    const auto count = [&](std::size_t bytes, int held, const char* allocation, const char* free) {
        std::vector<void*> blocks;
        const auto allocate = [&](void*) { blocks.push_back(pool.allocate(bytes)); };
        const auto last = [&] {
            void* const block = blocks.back();
            blocks.pop_back();
            return block;
        };
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < held; ++i) allocate(nullptr);
            while (!blocks.empty()) pool.deallocate(last(), bytes);
        }
        add(allocation, locked_operations(nothing, allocate, held));
        add(free, locked_operations(
                      last, [&](void* block) { pool.deallocate(block, bytes); }, held));
    };
    constexpr std::size_t MiB = std::size_t{1} << 20;
    count(1024, 1, "1 KiB, from a magazine", "1 KiB, freed into a magazine");
    count(1024, 2000, "1 KiB, through the depot", "1 KiB, freed through the depot");
    count(MiB, 1, "1 MiB, from a magazine", "1 MiB, freed into a magazine");
    count(16 * MiB, 1, "16 MiB, from the shared cache", "16 MiB, freed into the shared cache");
    count(MiB, 40, "1 MiB, 40 at once, from the heap", "1 MiB, 40 at once, freed");
    void* const block = pool.allocate(1000);
    std::thread([&] {
        pool.deallocate(pool.allocate(1000), 1000);
        pool.allocate(1000);
        add("1 KiB of another thread, freed into a magazine",
            locked_operations([&] { return block; },
                              [&](void* freed) { pool.deallocate(freed, 1000); }, 1));
    }).join();
    over.count_down();
    second.join();
    report.print("scale: what contention could add to a call", rows);
}

/// Prints what contention could add where two threads work on different shards: only operations on
/// cache lines that both lock can meet it.
void print_shards(const LockedCosts& costs, perf::Report& report) {
    using tensorpool::testing::SharedWords;
    using Calls = SharedWords::Calls;
    std::vector<perf::Cells> rows = {
        {"call", "shards", "locked operations", "on words of both", "at most, ns"}};
    const auto add = [&](const char* name, std::size_t bytes, std::size_t blocks, Calls which) {
        for (const unsigned shards : {1U, 2U}) {
            const SharedWords words(shards, bytes, blocks, which);
            const double ns = (words.max_locked() - words.usually_shared()) * costs.alone +
                              words.usually_shared() * costs.contended;
            rows.push_back({name, std::to_string(shards), std::to_string(words.max_locked()),
                            std::to_string(words.usually_shared()), text(ns, 0)});
        }
    };
    constexpr std::size_t MiB = std::size_t{1} << 20;
    add("1 KiB, through the depot", 1024, 1000, Calls::allocations);
    add("1 KiB, freed through the depot", 1024, 1000, Calls::frees);
    add("1 MiB, 40 at once, from the heap", MiB, 40, Calls::allocations);
    add("1 MiB, 40 at once, freed", MiB, 40, Calls::frees);
    report.print("scale: what contention could add if two threads are on different shards", rows);
}

void print_locked_operations(const perf::Options& options, perf::Report& report) {
    const LockedCosts costs = measure_costs(options);
    print_contention(costs, report);
    print_shards(costs, report);
}
#else
void print_locked_operations(const perf::Options&, perf::Report&) {}
#endif

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 51);
    perf::Report report(options);
    std::vector<perf::Cells> rows = {
        {"threads alive", "a thread, us", "more with a pair, us", "statistics(), us"}};
    for (const std::size_t threads : {1U, 100U, 1000U, 4000U}) {
        rows.push_back(with_idle_threads(
            options.quick ? std::min<std::size_t>(threads, 50) : threads, options, report));
    }
    report.print("scale: while threads that used the pool are alive", rows);
    print_locked_operations(options, report);
    return report.status();
}
