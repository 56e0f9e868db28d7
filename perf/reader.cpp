/// Question: how much does a reader that takes 100 snapshots a second slow down the process that it
/// observes?
///
/// The process allocates and frees on one core. The reader, another process on another core, is
/// switched on and off for windows of 20 ms. Of each pair of windows, one contains two snapshots
/// and the other none, in random order. The metric is the ratio of processor time per call with and
/// without the reader, for each pair of windows.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/interval.hpp"
#include "support/program.hpp"
#include "support/random.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using tensorpool::MemoryPool;

constexpr milliseconds window(20);
constexpr milliseconds between_snapshots(10);
constexpr std::size_t buffer_count = 4096;

/// Memory that both processes share.
struct Shared {
    std::atomic<bool> on = false;
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> snapshots = 0;
    std::atomic<std::uint64_t> failures = 0;
};

Shared* map_shared() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Shared;
}

/// Runs the reader. It wakes as often when it is off, so that only the snapshots differ.
void read(std::uint64_t process, Shared& shared) {
    perf::stay_on_core(1);
    auto reader = tensorpool::StatisticsReader::attach(process);
    auto next = steady_clock::now();
    while (!shared.stop) {
        std::this_thread::sleep_until(next);
        next += between_snapshots;
        if (!shared.on) continue;
        if (reader.snapshot().pools.empty()) ++shared.failures;
        ++shared.snapshots;
    }
}

/// Replaces random buffers of mixed sizes; each call of the pool writes the thread's counters.
class Work {
public:
    Work() {
        perf::Generator generator(7);
        for (std::size_t i = 0; i < buffer_count; ++i) {
            sizes_.push_back(perf::log_uniform(generator, 64, 64 << 10));
        }
        order_ = perf::shuffled(generator, buffer_count);
        buffers_.resize(buffer_count);
        for (std::size_t i = 0; i < buffer_count; ++i) buffers_[i] = pool_.allocate(sizes_[i]);
    }
    ~Work() {
        for (std::size_t i = 0; i < buffer_count; ++i) pool_.deallocate(buffers_[i], sizes_[i]);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    /// Runs for one window and returns nanoseconds of processor time per pair of calls.
    double ns_a_pair() {
        std::uint64_t pairs = 0;
        const double seconds = perf::cpu_seconds_of([&] {
            const auto end = steady_clock::now() + window;
            do {
                for (int i = 0; i < 1024; ++i) replace();
                pairs += 1024;
            } while (steady_clock::now() < end);
        });
        return seconds * 1e9 / static_cast<double>(pairs);
    }

private:
    void replace() {
        const std::size_t buffer = order_[next_++ % buffer_count];
        pool_.deallocate(buffers_[buffer], sizes_[buffer]);
        buffers_[buffer] = pool_.allocate(sizes_[buffer]);
        perf::opaque(buffers_[buffer]);
    }

    MemoryPool pool_;
    std::vector<std::size_t> sizes_;
    std::vector<std::uint32_t> order_;
    std::vector<void*> buffers_;
    std::size_t next_ = 0;
};

struct Pairs {
    std::vector<double> ratios;
    std::vector<double> off_ns;
    double snapshots_a_second = 0;
};

Pairs measure(int pairs, Shared& shared) {
    Work work;
    perf::Generator generator(11);
    Pairs taken;
    const auto run = [&](bool on) {
        shared.on = on;
        return work.ns_a_pair();
    };
    run(true);
    const std::uint64_t before = shared.snapshots;
    for (int pair = 0; pair < pairs; ++pair) {
        const bool on_first = (generator() & 1) != 0;
        const double first = run(on_first);
        const double second = run(!on_first);
        taken.ratios.push_back(on_first ? first / second : second / first);
        taken.off_ns.push_back(on_first ? second : first);
    }
    const double on_seconds = pairs * std::chrono::duration<double>(window).count();
    taken.snapshots_a_second = static_cast<double>(shared.snapshots - before) / on_seconds;
    return taken;
}

/// Returns the nanoseconds that a core waits for a cache line that the other core holds.
std::optional<double> ns_a_line() {
    if (!perf::two_cores()) return std::nullopt;
    struct alignas(64) Line {
        std::atomic<unsigned> turn = 0;
    } line;
    constexpr unsigned turns = 200'000;
    std::thread other([&line] {
        perf::stay_on_core(1);
        for (unsigned turn = 1; turn < turns; turn += 2) {
            while (line.turn.load(std::memory_order_acquire) != turn) {
            }
            line.turn.store(turn + 1, std::memory_order_release);
        }
    });
    constexpr unsigned batch = 1000;
    std::vector<double> ns;
    for (unsigned begin = 0; begin < turns; begin += batch) {
        const double seconds = perf::seconds_of([&line, begin] {
            for (unsigned turn = begin; turn < begin + batch; turn += 2) {
                while (line.turn.load(std::memory_order_acquire) != turn) {
                }
                line.turn.store(turn + 1, std::memory_order_release);
            }
        });
        // In each turn the line moves to the other core once.
        ns.push_back(seconds * 1e9 / batch);
    }
    other.join();
    // A low quantile, because batches are slow in which another program used one of the cores.
    return perf::quantile(ns, 0.1);
}

void print(const Pairs& pairs, double line_ns, perf::Report& report) {
    const double median = perf::median(pairs.ratios);
    const perf::Interval interval = perf::interval_of_median(pairs.ratios);
    // The thread's counters take one line for each of eleven buckets. A snapshot reads each line
    // twice, first frees, then allocations; the program waits for the line when it writes again.
    constexpr double lines = 2 * 11;
    const double floor = lines * line_ns * 100 * 1e-9;
    const std::vector<perf::Cells> rows = {
        {"windows of 20 ms, pairs", "ns a pair of calls, off", "snapshots a second, on",
         "ratio on / off", "95 % interval", "floor", "aim"},
        {text(static_cast<double>(pairs.ratios.size()), 0), text(perf::median(pairs.off_ns)),
         text(pairs.snapshots_a_second, 0), text(median, 4),
         text(interval.low, 4) + " to " + text(interval.high, 4), text(1 + floor, 6),
         report.judge(median, 1.01, 4)}};
    report.print("reader: 100 snapshots a second of a process that allocates continuously", rows);
    std::printf(
        "floor: %.0f cache lines x %.0f ns x 100 a second. The process executes no instructions\n"
        "for its readers.\n",
        lines, line_ns);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 600);
    perf::Report report(options);
    const std::optional<double> line_ns = ns_a_line();
    Shared* const shared = map_shared();
    if (!line_ns || shared == nullptr) {
        report.print_unmeasured("reader", "needs two cores and shared memory");
        return report.status();
    }
    perf::stay_on_core(0);
    tensorpool::get_global_memory_pool().deallocate(
        tensorpool::get_global_memory_pool().allocate(64));
    const auto process = static_cast<std::uint64_t>(getpid());
    const pid_t child = fork();
    if (child == 0) {
        read(process, *shared);
        _exit(shared->failures == 0 ? 0 : 1);
    }
    const Pairs pairs = measure(options.quick ? 5 : options.rounds, *shared);
    shared->stop = true;
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) {
        report.print_unmeasured("reader", "the reader saw no pool");
        return 1;
    }
    print(pairs, *line_ns, report);
    return report.status();
}
