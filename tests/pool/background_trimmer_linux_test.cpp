#include "pool/background_trimmer.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "pool/fill.hpp"
#include "support/child_process.hpp"
#include "support/own_threads_linux.hpp"
#include "support/process_metrics.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

using testing::exit_code_of_child;
using testing::holds_in_child;
using testing::use;

constexpr std::size_t mib = std::size_t{1} << 20;

PoolOptions options(BackgroundTrim background, std::uint32_t milliseconds = 10'000) {
    return {.retain = {.milliseconds = milliseconds, .background = background},
            .checks = Checks::off};
}

std::size_t trimmers() {
    return testing::threads_named("tensorpool-trim").size();
}

/// Waits until the trimmer has returned everything, and returns whether it did.
bool wait_until_empty(const MemoryPool& pool) {
    return testing::wait_until("the trimmer has returned the memory",
                               [&] { return pool.get_total_capacity() == 0; });
}

void free_at_once(MemoryPool& pool, std::size_t bytes) {
    pool.deallocate(pool.allocate(bytes), bytes);
}

TEST(BackgroundTrimmer, IsNotStartedByDefault) {
    MemoryPool pool(options(BackgroundTrim::off));
    free_at_once(pool, 100 * mib);
    use(pool);
    EXPECT_EQ(trimmers(), 0U);
}

TEST(BackgroundTrimmer, IsStartedWhenThePoolIsMade) {
    MemoryPool pool(options(BackgroundTrim::on));
    EXPECT_EQ(trimmers(), 1U);
    MemoryPool another(options(BackgroundTrim::on));
    use(another);
    EXPECT_EQ(trimmers(), 1U);
}

// The C library allocates and frees under locks that the start of a thread needs.
TEST(BackgroundTrimmer, IsStartedByNoAllocationAndByNoFree) {
    if (testing::sanitized()) GTEST_SKIP() << "a sanitizer has a thread of its own";
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool pool(options(BackgroundTrim::automatic));
        std::latch over(1);
        std::thread another([&] { over.wait(); });
        use(pool);
        free_at_once(pool, 100 * mib);
        const bool was_started = trimmers() != 0;
        detail::program_created_thread();
        over.count_down();
        another.join();
        return !was_started && trimmers() == 1;
    }));
}

TEST(BackgroundTrimmer, EndsWhenForbiddenAndRestartsWhenAllowed) {
    MemoryPool pool(options(BackgroundTrim::on));
    use(pool);
    allow_background_trimmer(false);
    EXPECT_EQ(trimmers(), 0U);
    use(pool);
    EXPECT_EQ(trimmers(), 0U);
    allow_background_trimmer(false);
    allow_background_trimmer(true);
    EXPECT_EQ(trimmers(), 1U);
}

TEST(BackgroundTrimmer, ReturnsFreeMemoryOfAnIdleProcess) {
    MemoryPool pool(options(BackgroundTrim::on, 1));
    for (int round = 0; round < 20; ++round) {
        use(pool);
        wait_until_empty(pool);  // the trimmer sleeps then, and the next round wakes it
    }
}

TEST(BackgroundTrimmer, ReturnsBlocksParkedByIdleThreads) {
    MemoryPool pool(options(BackgroundTrim::on, 1));
    std::latch used(2);
    std::latch over(1);
    std::thread thread([&] {
        use(pool);
        used.count_down();
        over.wait();
        use(pool);
    });
    used.arrive_and_wait();
    wait_until_empty(pool);
    over.count_down();
    thread.join();
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(BackgroundTrimmer, AutomaticModeDoesNotStartInASingleThreadedProcess) {
    if (testing::sanitized()) GTEST_SKIP() << "a sanitizer has a thread of its own";
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool pool(options(BackgroundTrim::automatic));
        free_at_once(pool, 100 * mib);
        detail::program_created_thread();  // it has not
        return trimmers() == 0;
    }));
}

TEST(BackgroundTrimmer, AutomaticModeStartsInAProcessWithThreads) {
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool before(options(BackgroundTrim::automatic));
        std::latch over(1);
        std::thread another([&] { over.wait(); });
        if (!testing::sanitized() && trimmers() != 0) return false;
        const MemoryPool after(options(BackgroundTrim::automatic));
        const bool has_started = trimmers() == 1;
        over.count_down();
        another.join();
        return has_started;
    }));
}

TEST(BackgroundTrimmer, IsStartedAgainInAChild) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers lose threads in a multithreaded fork";
    MemoryPool pool(options(BackgroundTrim::on, 1));
    use(pool);
    EXPECT_TRUE(holds_in_child([&] {
        if (trimmers() != 1) return false;
        use(pool);
        pool.trim();  // blocks that the parent's thread was returning are lost
        allow_background_trimmer(false);
        return testing::thread_count() == 1;
    }));
    EXPECT_EQ(trimmers(), 1U);
}

TEST(BackgroundTrimmer, ChildrenForkedDuringAPassHaveConsistentPools) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers lose threads in a multithreaded fork";
    MemoryPool pool(options(BackgroundTrim::on, 1));
    for (int round = 0; round < 100; ++round) {
        use(pool);
        EXPECT_TRUE(holds_in_child([&] {
            use(pool);
            return wait_until_empty(pool) && pool.get_total_allocated() == 0;
        })) << round;
    }
}

TEST(BackgroundTrimmer, DoesNotBlockTheEndOfTheProcess) {
    EXPECT_EQ(exit_code_of_child([]() -> int {
                  static MemoryPool pool(options(BackgroundTrim::on, 1));
                  use(pool);
                  std::exit(7);
              }),
              7);
}

// The child's only thread is the one that forked, which no longer acts as the trimmer.
TEST(BackgroundTrimmer, EndsInAChildForkedByItsCallback) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers lose threads in a multithreaded fork";
    std::atomic<pid_t> child = -1;
    PoolOptions forking = options(BackgroundTrim::on, 1);
    forking.on_event = [&](const PoolEvent& event) {
        if (event.kind == PoolEvent::Kind::give_back && child == -1) child = ::fork();
        if (child == 0) std::atexit([] { _exit(9); });
    };
    MemoryPool pool(forking);
    use(pool);
    wait_until_empty(pool);
    testing::wait_until("the callback has forked", [&] { return child != -1; });
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 9) << status;
}

TEST(BackgroundTrimmer, CallbackMayCallExit) {
    EXPECT_EQ(exit_code_of_child([]() -> int {
                  // The pool is destroyed at exit, when no call to it may be in progress.
                  static std::recursive_mutex using_pool;
                  PoolOptions ending = options(BackgroundTrim::on, 1);
                  ending.on_event = [](const PoolEvent& event) {
                      if (event.kind != PoolEvent::Kind::give_back) return;
                      const std::lock_guard guard(using_pool);
                      std::exit(7);
                  };
                  static MemoryPool pool(ending);
                  {
                      const std::lock_guard guard(using_pool);
                      use(pool);
                  }
                  for (;;) ::pause();
              }),
              7);
}

TEST(BackgroundTrimmer, VisitsPoolsWhileOthersAreMadeAndDestroyed) {
    std::atomic<bool> is_over = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            while (!is_over) use(*std::make_unique<MemoryPool>(options(BackgroundTrim::on, 1)));
        });
    }
    constexpr int rounds = testing::sanitized() ? 10 : 50;
    for (int round = 0; round < rounds; ++round) {
        MemoryPool pool(options(BackgroundTrim::on, 1));
        use(pool);
        wait_until_empty(pool);
        allow_background_trimmer(round % 2 == 0);
        allow_background_trimmer(true);
    }
    is_over = true;
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tensorpool
