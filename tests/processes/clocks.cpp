#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <thread>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "blocks.hpp"
#include "lives.hpp"

namespace processes {
namespace {

constexpr std::uint64_t hour = 3'600'000'000'000;
constexpr std::uint64_t begin = 1'800'000'000'000'000'000;
// The clocks go on from here. The last one is where they began.
constexpr std::uint64_t times[] = {begin,
                                   begin + 5 * hour,
                                   begin - 3 * hour,
                                   begin + 100'000 * hour,
                                   0,
                                   INT64_MAX,
                                   begin,
                                   INT64_MAX - hour,
                                   1,
                                   UINT64_MAX - hour,
                                   UINT64_MAX / 2 + 1,
                                   begin};
constexpr std::size_t allowed_bytes = 8 << 20;
constexpr long max_seconds = 30;  // the trimmer needs a tenth of one on an idle machine

long real_seconds() {
    timespec now{};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

tensorpool::PoolStatistics statistics() {
    return tensorpool::get_global_memory_pool().statistics();
}

/// Waits until the trimmer has returned the free memory.
void expect_memory_returns() {
    const long begin_seconds = real_seconds();
    while (statistics().capacity_bytes > statistics().in_use_bytes + allowed_bytes) {
        if (real_seconds() - begin_seconds > max_seconds) fail("free memory stays");
        std::this_thread::yield();
    }
}

/// Works with small blocks, whose guards cost least, until more than `guarded` were guarded.
/// Returns how many.
std::uint64_t expect_more_guarded(std::uint64_t guarded) {
    const long begin_seconds = real_seconds();
    while (statistics().guarded_allocations == guarded) {
        if (real_seconds() - begin_seconds > max_seconds) fail("no more block is guarded");
        for (unsigned i = 0; i < 10'000; ++i) give(take(100), 100);
    }
    return statistics().guarded_allocations;
}

/// Each call allocates and frees more than `allowed_bytes`, in two threads.
void hold_much() {
    const Workers workers(2);
    work(1, 2'000);
    void* blocks[40];
    for (void*& block : blocks) block = take(1 << 20);
    for (void* const block : blocks) give(block, 1 << 20);
    tensorpool::Arena arena;
    for (unsigned i = 0; i < 100; ++i) (void)arena.allocate(10'000);
}

}  // namespace

int run_with_jumping_clock(unsigned rounds) {
    auto* const set_clocks =
        reinterpret_cast<void (*)(std::uint64_t)>(dlsym(RTLD_DEFAULT, "set_clocks"));
    if (set_clocks == nullptr) fail("no clock that jumps: see LD_PRELOAD");
    give(take(100), 100);
    auto reader = tensorpool::StatisticsReader::attach(static_cast<std::uint64_t>(getpid()));
    std::uint64_t entry = 0;
    std::uint64_t guarded = 0;
    for (unsigned i = 0; i < rounds * std::size(times); ++i) {
        set_clocks(times[i % std::size(times)]);
        hold_much();
        if (has_checks("sampled")) guarded = expect_more_guarded(guarded);
        (void)reader.snapshot();
        const tensorpool::TimelinePart part = reader.entries_since(entry);
        if (part.last == entry) fail("the timeline has no new entry");
        entry = part.last;
        expect_memory_returns();
    }
    std::printf("%zu jumps, %llu entries, %llu guarded blocks\n", rounds * std::size(times),
                static_cast<unsigned long long>(entry), static_cast<unsigned long long>(guarded));
    return 0;
}

}  // namespace processes
