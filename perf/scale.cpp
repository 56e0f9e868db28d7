/// Question: what do a thread's start and end, and a look at the statistics, cost where thousands
/// of threads that used the pool are alive?

#include <algorithm>
#include <latch>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::MemoryPool;

/// A pair of each bucket: the thread has magazines of all.
void use(MemoryPool& pool) {
    for (std::size_t bytes = 64; bytes <= 64 * 1024; bytes *= 2) {
        pool.deallocate(pool.allocate(bytes), bytes);
    }
}

/// Threads that used the pool and then wait until this goes.
class IdleThreads {
public:
    IdleThreads(MemoryPool& pool, std::size_t count) : used_(static_cast<std::ptrdiff_t>(count)) {
        for (std::size_t i = 0; i < count; ++i) {
            threads_.emplace_back([this, &pool] {
                use(pool);
                used_.count_down();
                over_.wait();
            });
        }
        used_.wait();
    }
    ~IdleThreads() {
        over_.count_down();
        for (std::thread& thread : threads_) thread.join();
    }
    IdleThreads(const IdleThreads&) = delete;
    IdleThreads& operator=(const IdleThreads&) = delete;

private:
    std::latch used_;
    std::latch over_{1};
    std::vector<std::thread> threads_;
};

/// Microseconds for a thread from its start to its end.
template <class Work>
double us_of_a_thread(Work work) {
    constexpr int threads = 20;
    const double seconds = perf::seconds_of([&] {
        for (int i = 0; i < threads; ++i) std::thread(work).join();
    });
    return seconds * 1e6 / threads;
}

perf::Cells beside(std::size_t threads, const perf::Options& options, perf::Report& report) {
    MemoryPool pool;
    const IdleThreads idle(pool, threads);
    const perf::Turns measured(
        options.rounds,
        {[] { return us_of_a_thread([] {}); },
         [&] { return us_of_a_thread([&] { pool.deallocate(pool.allocate(1000), 1000); }); },
         [&] { return perf::seconds_of([&] { (void)pool.statistics(); }) * 1e6; }});
    return {std::to_string(threads), text(measured.median(0), 1),
            report.judge(measured.median(1) - measured.median(0), 10.0, 1),
            report.judge(measured.median(2), 1000.0, 0)};
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 51);
    perf::Report report(options);
    std::vector<perf::Cells> rows = {
        {"threads alive", "a thread, us", "more with a pair, us", "statistics(), us"}};
    for (const std::size_t threads : {1U, 100U, 1000U, 4000U}) {
        rows.push_back(
            beside(options.quick ? std::min<std::size_t>(threads, 50) : threads, options, report));
    }
    report.print("scale: beside threads that used the pool", rows);
    return report.status();
}
