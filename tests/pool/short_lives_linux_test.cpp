// What pools and threads cost that live for a moment, in instructions, system calls and page
// faults. A clock would show the load of the machine.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include "support/counted_call_linux.hpp"
#include "support/living_threads.hpp"

namespace tensorpool {
namespace {

using testing::count_call;
using testing::CountedCall;
using testing::LivingThreads;

void use(MemoryPool& pool) {
    pool.deallocate(pool.allocate(100), 100);
}

/// Counts a pool that is made, used once and destroyed.
CountedCall count_life_of_a_pool() {
    const auto live = [] {
        MemoryPool pool({.name = "short"});
        use(pool);
    };
    for (int i = 0; i < 3; ++i) live();
    // The cheapest of several: from time to time one also looks at the memory that is available.
    auto fewest = count_call(live);
    for (int i = 0; i < 2; ++i) {
        const auto next = count_call(live);
        if (next.instructions < fewest.instructions) fewest = next;
    }
    return fewest;
}

/// Counts the first pair of calls of a thread, the cheapest of several threads: some need memory
/// for records that serves the next ones as well.
unsigned count_first_pair(MemoryPool& pool) {
    unsigned fewest = ~0U;
    for (int i = 0; i < 10; ++i) {
        // Threads that stay, so that the counters of an ended thread do not serve.
        const LivingThreads threads(
            1, [&] { fewest = std::min(fewest, count_call([&] { use(pool); }).instructions); });
    }
    return fewest;
}

/// The page faults of a fork, in the child until its handlers have run.
long count_faults_of_child() {
    void* const memory =
        mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    long* const faults = new (memory) long(-1);
    const pid_t child = fork();
    if (child == 0) {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        *faults = usage.ru_minflt;
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    const long counted = *faults;
    munmap(memory, sizeof(long));
    return counted;
}

TEST(ShortPool, TakesFewSystemCalls) {
    EXPECT_LE(count_life_of_a_pool().system_calls, 28U);
}

TEST(ShortPool, CostsTheSameBesideManyOthers) {
    const unsigned alone = count_life_of_a_pool().instructions;
    std::vector<std::unique_ptr<MemoryPool>> others;
    for (int i = 0; i < 900; ++i) {
        others.push_back(std::make_unique<MemoryPool>(PoolOptions{.name = "other"}));
    }
    EXPECT_LE(count_life_of_a_pool().instructions, alone + alone / 20);
}

TEST(ShortPool, CostsTheSameBesideManyThreads) {
    MemoryPool pool({.name = "of many threads"});
    const unsigned alone = count_life_of_a_pool().instructions;
    const LivingThreads threads(300, [&] { use(pool); });
    EXPECT_LE(count_life_of_a_pool().instructions, alone + alone / 20);
}

TEST(ShortThread, FirstAllocationCostsTheSameBesideManyThreads) {
#ifndef NDEBUG
    GTEST_SKIP() << "without optimizations, its instructions take minutes to count";
#endif
    MemoryPool pool({.name = "of many threads"});
    const unsigned alone = count_first_pair(pool);
    const LivingThreads threads(500, [&] { use(pool); });
    EXPECT_LE(count_first_pair(pool), alone + alone / 10);
}

// The system copies each page that the child writes to.
TEST(ForkOfManyThreads, ChildWritesToFewPagesOfThreadsThatUsedAPool) {
    constexpr unsigned threads = 300;
    MemoryPool pool({.name = "of many threads"});
    use(pool);
    long unused = 0;
    {
        const LivingThreads living(threads, [] {});
        unused = count_faults_of_child();
    }
    const LivingThreads living(threads, [&] { use(pool); });
    EXPECT_LE(count_faults_of_child(), unused + threads / 2);
}

}  // namespace
}  // namespace tensorpool

#endif
