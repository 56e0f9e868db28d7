/// Question: what does a pair of allocate and deallocate cost while blocks are charged to budgets,
/// does the charge of many threads ever exceed a limit, and what memory do a million budgets, one
/// after another and 64 at once, hold?

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

#include "support/program.hpp"
#include "support/resident.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::Budget;
using tensorpool::BudgetScope;
using tensorpool::Checks;
using tensorpool::MemoryPool;
using tensorpool::PoolOptions;

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;

PoolOptions unchecked() {
    PoolOptions options;
    options.name = "budgets";
    options.checks = Checks::off;
    return options;
}

/// Returns the nanoseconds of a pair.
double pair_ns(MemoryPool& pool, std::size_t bytes, int pairs) {
    const double seconds = perf::cpu_seconds_of([&] {
        for (int i = 0; i != pairs; ++i) {
            void* block = pool.allocate(bytes);
            asm volatile("" : "+r"(block) : : "memory");
            pool.deallocate(block, bytes);
        }
    });
    return seconds * 1e9 / pairs;
}

void measure_pairs(const perf::Options& options, perf::Report& report) {
    const int pairs = options.quick ? 1'000 : 200'000;
    std::vector<perf::Cells> rows = {
        {"pair, ns", "no budget", "beside a charged block", "in a scope", "in a scope, 4 levels"}};
    Budget process("process");
    Budget part(process, "part");
    Budget request(part, "request");
    Budget step(request, "step");
    for (const std::size_t bytes : {std::size_t{64}, kib, 16 * kib, mib}) {
        MemoryPool pool(unchecked());
        MemoryPool other(unchecked());
        const auto in_scope = [&](Budget& budget) {
            const BudgetScope scope(budget);
            pair_ns(pool, bytes, 64);
            return pair_ns(pool, bytes, pairs);
        };
        const auto beside = [&] {
            void* charged = nullptr;
            {
                const BudgetScope scope(process);
                charged = pool.allocate(64);
            }
            pair_ns(pool, bytes, 64);
            const double ns = pair_ns(pool, bytes, pairs);
            pool.deallocate(charged, 64);
            return ns;
        };
        const perf::Turns turns(options.rounds, {[&] {
                                                     pair_ns(pool, bytes, 64);
                                                     return pair_ns(pool, bytes, pairs);
                                                 },
                                                 beside, [&] { return in_scope(process); },
                                                 [&] { return in_scope(step); }});
        const bool is_small = bytes < mib;
        rows.push_back({bytes < kib   ? std::to_string(bytes) + " B"
                        : bytes < mib ? std::to_string(bytes / kib) + " KiB"
                                      : "1 MiB",
                        text(turns.median(0)),
                        is_small ? report.judge(turns.median(1), 15) : text(turns.median(1)),
                        is_small ? report.judge(turns.median(2), 15) : text(turns.median(2)),
                        is_small ? report.judge(turns.median(3), 15) : text(turns.median(3))});
    }
    report.print("budgets: a pair", rows);
}

/// 64 threads allocate within one limit, each in a budget of its own below it.
void measure_overshoot(const perf::Options& options, perf::Report& report) {
    constexpr std::size_t limit = 64 * mib;
    const int steps = options.quick ? 200 : 20'000;
    MemoryPool pool(unchecked());
    Budget process("process", {.hard = limit});
    std::atomic<std::size_t> highest = 0;
    std::atomic<std::size_t> refused = 0;
    std::vector<std::thread> threads;
    for (unsigned number = 0; number != 64; ++number) {
        threads.emplace_back([&, number] {
            Budget own(process, "thread");
            const BudgetScope scope(own);
            unsigned random = number + 1;
            std::vector<std::pair<void*, std::size_t>> blocks;
            for (int step = 0; step != steps; ++step) {
                random = random * 1664525 + 1013904223;
                const std::size_t bytes = 1 + (random >> 8) % (step % 16 == 0 ? mib : 8 * kib);
                void* const block = pool.try_allocate(bytes);
                if (block == nullptr) refused.fetch_add(1);
                if (block != nullptr) blocks.emplace_back(block, bytes);
                const std::size_t in_use = process.in_use();
                std::size_t seen = highest.load();
                while (in_use > seen && !highest.compare_exchange_weak(seen, in_use)) {
                }
                if (blocks.size() < 200) continue;
                for (const auto& [freed, its_bytes] : blocks) pool.deallocate(freed, its_bytes);
                blocks.clear();
            }
            for (const auto& [freed, its_bytes] : blocks) pool.deallocate(freed, its_bytes);
        });
    }
    for (std::thread& thread : threads) thread.join();
    report.print("budgets: 64 threads within 64 MiB",
                 {{"", "highest charge / limit", "refused", "charged afterwards, B"},
                  {"requests",
                   report.judge(static_cast<double>(process.statistics().peak_bytes) /
                                    static_cast<double>(limit),
                                1, 4),
                   std::to_string(refused.load()), std::to_string(process.in_use())}});
}

/// A request with a budget of its own: small blocks, and a large one.
void serve(MemoryPool& pool, Budget& process) {
    Budget request(process, "request", {.hard = 8 * mib});
    const BudgetScope scope(request);
    void* const small = pool.allocate(1000);
    void* const large = pool.allocate(100 * kib);
    pool.deallocate(large, 100 * kib);
    pool.deallocate(small, 1000);
}

void measure_many(const perf::Options& options, perf::Report& report) {
    const int requests = options.quick ? 1'000 : 1'000'000;
    MemoryPool pool(unchecked());
    Budget process("process");
    for (int i = 0; i != 100; ++i) serve(pool, process);
    const auto held = [&] {
        return static_cast<double>(perf::resident_bytes()) / static_cast<double>(mib);
    };
    const double before = held();
    const double seconds = perf::seconds_of([&] {
        for (int i = 0; i != requests; ++i) serve(pool, process);
    });
    const double after = held();
    // 64 at once, each with its blocks in use.
    std::vector<std::unique_ptr<Budget>> budgets;
    std::vector<void*> blocks;
    for (int i = 0; i != 64; ++i) {
        budgets.push_back(std::make_unique<Budget>(process, "request"));
        const BudgetScope scope(*budgets.back());
        for (int k = 0; k != 8; ++k) blocks.push_back(pool.allocate(1000));
    }
    const double at_once = held();
    const auto charged = static_cast<double>(process.in_use()) / static_cast<double>(mib);
    for (void* const block : blocks) pool.deallocate(block, 1000);
    report.print(
        "budgets: of requests, one after another and 64 at once",
        {{"", "requests", "us each", "MiB more held", "64 at once, MiB more", "of it charged"},
         {"budgets", std::to_string(requests), text(seconds * 1e6 / requests),
          report.judge(after - before, 4), report.judge(at_once - after, 4), text(charged)}});
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 51);
    perf::Report report(options);
    measure_pairs(options, report);
    measure_overshoot(options, report);
    measure_many(options, report);
    return report.status();
}
