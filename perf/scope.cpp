/// Question: how much time does a StatisticsScope take at its beginning and end, and how much does
/// it add to calls in between?

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_scope.hpp>

#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::MemoryPool;
using tensorpool::StatisticsScope;
using tensorpool::detail::ThreadCounters;

/// Returns nanoseconds per call of `work`.
template <class Work>
double time_of(std::size_t times, Work work) {
    const double seconds = perf::seconds_of([&] {
        for (std::size_t i = 0; i < times; ++i) work();
    });
    return seconds * 1e9 / static_cast<double>(times);
}

/// The least work of a scope that costs nothing in between: read each word that it reports, in each
/// pool, at its beginning and at its end, and add the differences to sums that threads share.
class Floor {
public:
    explicit Floor(std::size_t pools) : counters_(pools) {}

    void begin_and_end() {
        const std::uint64_t before = look();
        const std::uint64_t after = look();
        for (std::atomic<std::uint64_t>& sum : sums_) {
            sum.fetch_add(after - before + 1, std::memory_order_relaxed);
        }
    }

private:
    std::uint64_t look() const {
        std::uint64_t sum = 0;
        for (const ThreadCounters& thread : counters_) {
            for (const auto& bucket : thread.buckets) {
                sum += read(bucket.allocations) + 3 * read(bucket.deallocations) +
                       5 * read(bucket.requested_bytes);
            }
            sum += read(thread.large.allocations) + read(thread.large.deallocations) +
                   read(thread.large.requested_bytes) + read(thread.large.allocated_bytes) +
                   read(thread.large.deallocated_bytes);
        }
        perf::opaque(sum);
        return sum;
    }
    static std::uint64_t read(const tensorpool::detail::Counter& counter) {
        return counter.load(std::memory_order_relaxed);
    }

    std::vector<ThreadCounters> counters_;
    alignas(64) std::array<std::atomic<std::uint64_t>, 7> sums_ = {};
};

void allocate_and_free(MemoryPool& pool) {
    void* block = pool.allocate(1000);
    perf::opaque(block);
    pool.deallocate(block, 1000);
}

/// Makes pools and uses each once, so that the thread has counters in each.
std::vector<std::unique_ptr<MemoryPool>> used_pools(std::size_t count) {
    std::vector<std::unique_ptr<MemoryPool>> pools(count);
    for (auto& pool : pools) {
        pool = std::make_unique<MemoryPool>(
            tensorpool::PoolOptions{.checks = tensorpool::Checks::off});
        allocate_and_free(*pool);
    }
    return pools;
}

perf::Cells ends_of_a_scope(const perf::Options& options, perf::Report& report, std::size_t pools) {
    const auto used = used_pools(pools);
    const std::size_t times = options.quick ? 10 : 2000;
    Floor floor(pools);
    const perf::Turns measured(
        options.rounds,
        {[&] { return time_of(times, [&] { floor.begin_and_end(); }); },
         [&] { return time_of(times, [] { const StatisticsScope scope("empty"); }); },
         [&] {
             return time_of(times, [] {
                 const StatisticsScope outer("outer");
                 const StatisticsScope inner("inner");
             });
         },
         [&] { return time_of(times, [&] { return allocate_and_free(*used.front()); }); },
         [&] {
             return time_of(times, [&] {
                 const StatisticsScope scope("with a pair");
                 allocate_and_free(*used.front());
             });
         }});
    const double aim_ns = 60.0 + 40.0 * static_cast<double>(pools);
    return {std::to_string(pools), text(measured.median(0), 0),
            report.judge(measured.median(1), aim_ns, 0), text(measured.median(2), 0),
            text(measured.median(4) - measured.median(3), 0)};
}

void measure_ends(const perf::Options& options, perf::Report& report) {
    std::vector<perf::Cells> rows = {{"pools that the thread uses", "floor", "scope", "two, nested",
                                      "around a pair, without it"}};
    // The global pool is not among them: nothing here uses it.
    for (const std::size_t pools : {1U, 4U, 16U}) {
        rows.push_back(ends_of_a_scope(options, report, pools));
    }
    report.print("scope: ns from its beginning to its end", rows);
}

/// Allocates and frees `blocks` repeatedly, about 20,000 pairs in all. Returns nanoseconds per
/// pair.
double ns_a_pair(MemoryPool& pool, std::vector<void*>& blocks, const perf::Options& options) {
    const std::size_t pairs = options.quick ? 1000 : 20'000;
    const auto allocate_and_free_all = [&] {
        for (void*& block : blocks) block = pool.allocate(1000);
        for (void* const block : blocks) pool.deallocate(block, 1000);
    };
    return time_of(pairs / blocks.size(), allocate_and_free_all) /
           static_cast<double>(blocks.size());
}

void measure_between(const perf::Options& options, perf::Report& report) {
    std::vector<perf::Cells> rows = {{"a pair of 1000 B", "ns", "in a scope", "ratio"}};
    const auto add = [&](const std::string& name, std::size_t pools, std::size_t count) {
        const auto used = used_pools(pools);
        std::vector<void*> blocks(count);
        const auto pair = [&] { return ns_a_pair(*used.front(), blocks, options); };
        const perf::Turns measured(options.rounds, {pair, [&] {
                                                        const StatisticsScope scope("open");
                                                        return pair();
                                                    }});
        rows.push_back(
            {name, text(measured.median(0)), text(measured.median(1)), text(measured.ratio(1, 0))});
    };
    add("within one magazine, 4 pools", 4, 8);
    add("1000 at once, 1 pool", 1, 1000);
    add("1000 at once, 4 pools", 4, 1000);
    report.print("scope: cost of a pair while a scope is open", rows);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 101);
    perf::Report report(options);
    perf::stay_on_core(0);
    measure_ends(options, report);
    measure_between(options, report);
    return report.status();
}
