#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <type_traits>

#include "support/child_process.hpp"
#include "support/run_program.hpp"

namespace tensorpool {
namespace {

using testing::ProgramResult;
using testing::run_program;
using testing::Variables;

ProgramResult use_with(const Variables& variables) {
    return run_program(GLOBAL_POOL_PROGRAM, {"use"}, variables);
}

std::string allocate_with(const Variables& variables, const std::string& bytes) {
    return run_program(GLOBAL_POOL_PROGRAM, {"allocate", bytes}, variables).output;
}

bool shows(const ProgramResult& result, const std::string& text) {
    return result.exit_code == 0 && result.output.find(text) != std::string::npos;
}

TEST(GlobalPool, IsUniqueAndNeverDestroyed) {
    EXPECT_EQ(&get_global_memory_pool(), &get_global_memory_pool());
    EXPECT_EQ(get_global_memory_pool().name(), "global");
}

// ctest runs each test of this suite in a process of its own, so the pool is unused here.
TEST(GlobalPool, QueriesWorkBeforeFirstUse) {
    const int on_stack = 0;
    MemoryPool& pool = get_global_memory_pool();
    EXPECT_FALSE(pool.owns(&on_stack));
    EXPECT_EQ(pool.usable_size(&on_stack), 0U);
    pool.deallocate(nullptr);
    pool.deallocate(nullptr, 100);
    EXPECT_EQ(pool.get_utilization_ratio(), 0.0);
    EXPECT_EQ(pool.get_allocation_count(), pool.get_deallocation_count());
    EXPECT_EQ(pool.allocate(0), nullptr);
    pool.trim();
}

TEST(GlobalPool, SaysIfItsLimitRefusedARequest) {
    constexpr std::size_t mib = std::size_t{1} << 20;
    MemoryPool& pool = get_global_memory_pool();
    pool.set_max_capacity(pool.get_total_capacity() + mib);
    const auto refused = detail::GlobalPool::try_allocate(64 * mib, 64);
    pool.set_max_capacity(0);
    EXPECT_EQ(refused.block, nullptr);
    EXPECT_TRUE(refused.is_limited);
}

TEST(GlobalPool, IsSetUpOnceByConcurrentThreads) {
    std::thread threads[4];
    for (std::thread& thread : threads) {
        thread = std::thread([] {
            for (unsigned i = 0; i < 100; ++i) {
                MemoryPool& pool = get_global_memory_pool();
                pool.deallocate(pool.allocate(i + 1), i + 1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(get_global_memory_pool().get_total_allocated(), 0U);
}

TEST(GlobalPool, ServesTheChildOfAFork) {
    MemoryPool& pool = get_global_memory_pool();
    void* const block = pool.allocate(100);
    EXPECT_TRUE(testing::holds_in_child([&] {
        pool.deallocate(block, 100);
        pool.deallocate(pool.allocate(1 << 20));
        return pool.get_total_allocated() == 0;
    }));
    pool.deallocate(block, 100);
}

// Programs ---------------------------------------------------------------------------------------

TEST(GlobalPoolProgram, ServesStaticConstructorsAndDestructors) {
    for (const char* const checks : {"off", "full"}) {
        const ProgramResult result =
            run_program(STATICS_PROGRAM, {}, {{"TENSORPOOL_CHECKS", checks}});
        EXPECT_EQ(result.exit_code, 0) << result.errors;
        EXPECT_EQ(result.output, "all given back\n");
        EXPECT_EQ(result.errors, "");
    }
}

// Not under sanitizers: their malloc does not survive a fork during another thread's call.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Which of the two comes first varies. A child that inherits a lock that no thread releases would
// hang in some rounds.
TEST(GlobalPoolProgram, ServesAChildForkedDuringSetUp) {
    for (int round = 0; round < 40; ++round) {
        EXPECT_EQ(run_program(GLOBAL_POOL_PROGRAM, {"fork"}, {}).exit_code, 0);
    }
}
#endif

TEST(GlobalPoolProgram, OutlivesThePluginThatLoadedIt) {
    const ProgramResult result = run_program(PLUGIN_HOST, {PLUGIN});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(result.output, "threads ended after the plugin\n");
    EXPECT_EQ(result.errors, "");
}

TEST(GlobalPoolProgram, StartsNoThreadAndOpensOnlySegmentAndControl) {
    for (const char* const statistics : {"on", "off"}) {
        const ProgramResult result =
            run_program(GLOBAL_POOL_PROGRAM, {"quiet"}, {{"TENSORPOOL_STATISTICS", statistics}});
        EXPECT_EQ(result.exit_code, 0) << statistics;
        EXPECT_EQ(result.output, "");
        EXPECT_EQ(result.errors, "");
    }
}

// Variables --------------------------------------------------------------------------------------

TEST(GlobalPoolVariables, LimitsApply) {
    EXPECT_EQ(allocate_with({{"TENSORPOOL_MAX_CAPACITY", "64MiB"}}, "60000000"), "met\n");
    EXPECT_EQ(allocate_with({{"TENSORPOOL_MAX_CAPACITY", "64MiB"}}, "70000000"), "refused\n");
    EXPECT_EQ(allocate_with({{"TENSORPOOL_MAX_ALLOCATION", "1MiB"}}, "1048576"), "met\n");
    EXPECT_EQ(allocate_with({{"TENSORPOOL_MAX_ALLOCATION", "1MiB"}}, "1048577"), "refused\n");
}

TEST(GlobalPoolVariables, OptionsAreApplied) {
    EXPECT_TRUE(
        shows(use_with({{"TENSORPOOL_MAX_CAPACITY", "64MiB"}}), "\"limit_bytes\":67108864"));
    const ProgramResult ready = use_with({{"TENSORPOOL_INITIAL_CAPACITY", "32MiB"}});
    EXPECT_TRUE(shows(ready, "\"capacity_bytes\":33554432")) << ready.output;
    EXPECT_TRUE(shows(ready, "\"growths\":1,"));
    EXPECT_TRUE(shows(use_with({{"TENSORPOOL_CHECKS", "basic"}}), "\"cache_hits\":0,"));
    EXPECT_TRUE(shows(use_with({{"TENSORPOOL_RETAIN_MS", "0"}}), "\"cached_bytes\":0,"));
    EXPECT_EQ(ready.errors, "");
}

TEST(GlobalPoolVariables, InvalidValueIsReportedAndThePoolWorks) {
    const ProgramResult result = use_with({{"TENSORPOOL_MAX_CAPACITY", "plenty"}});
    EXPECT_TRUE(shows(result, "\"limit_bytes\":0,"));
    EXPECT_EQ(result.errors,
              "tensorpool: TENSORPOOL_MAX_CAPACITY is 'plenty'; expected a size such as "
              "512MiB or 2GiB; used instead: none\n");
}

TEST(GlobalPoolVariables, InitialCapacityAboveTheLimitIsReportedAndReduced) {
    const ProgramResult result =
        use_with({{"TENSORPOOL_INITIAL_CAPACITY", "64MiB"}, {"TENSORPOOL_MAX_CAPACITY", "32MiB"}});
    EXPECT_TRUE(shows(result, "\"capacity_bytes\":33554432"));
    EXPECT_EQ(result.errors,
              "tensorpool: TENSORPOOL_INITIAL_CAPACITY is more than "
              "TENSORPOOL_MAX_CAPACITY; used instead: 32 MiB\n");
}

TEST(GlobalPoolVariables, RefusedInitialCapacityIsReportedAndThePoolWorks) {
    const ProgramResult result = use_with({{"TENSORPOOL_INITIAL_CAPACITY", "1000TiB"}});
    EXPECT_TRUE(shows(result, "\"in_use_bytes\":0,"));
    EXPECT_EQ(result.errors,
              "tensorpool: TENSORPOOL_INITIAL_CAPACITY is 1000 TiB, which cannot be reserved: "
              "limit met: address space; used instead: 0 B\n");
}

TEST(GlobalPoolVariables, ReportIsPrintedAtExitOnRequest) {
    const ProgramResult result = use_with({{"TENSORPOOL_REPORT", "1"}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.errors.find("tensorpool: pool 'global'\n"), 0U) << result.errors;
    EXPECT_NE(result.errors.find("24 allocations, 24 deallocations, 0 failures"), std::string::npos)
        << result.errors;
    EXPECT_EQ(use_with({{"TENSORPOOL_REPORT", "0"}}).errors, "");
    EXPECT_EQ(use_with({{"TENSORPOOL_REPORT", "please"}}).errors,
              "tensorpool: TENSORPOOL_REPORT is 'please'; expected 1 or 0; used instead: 0\n");
}

TEST(GlobalPoolVariables, ReportShowsEveryPoolThatExistsAtExit) {
    const ProgramResult result =
        run_program(GLOBAL_POOL_PROGRAM, {"pools"}, {{"TENSORPOOL_REPORT", "1"}});
    EXPECT_EQ(result.exit_code, 0);
    const std::size_t global = result.errors.find("tensorpool: pool 'global'\n");
    const std::size_t stays = result.errors.find("tensorpool: pool 'stays'\n");
    EXPECT_EQ(global, 0U) << result.errors;
    ASSERT_NE(stays, std::string::npos) << result.errors;
    EXPECT_NE(result.errors.find("1 allocations, 1 deallocations", stays), std::string::npos);
    EXPECT_EQ(result.errors.find("'ends'"), std::string::npos) << result.errors;
}

TEST(GlobalPoolVariables, UnusedPoolReadsAndReportsNothing) {
    const ProgramResult result =
        run_program(GLOBAL_POOL_PROGRAM, {"nothing"},
                    {{"TENSORPOOL_REPORT", "1"}, {"TENSORPOOL_CHECKS", "some"}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.errors, "");
}

}  // namespace
}  // namespace tensorpool
