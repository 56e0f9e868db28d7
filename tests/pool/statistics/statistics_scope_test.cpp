// The counts of a StatisticsScope for pools, for every way in which calls are counted.

#include <tensorpool/statistics_scope.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "pool/check_levels.hpp"
#include "pool/fill.hpp"
#include "statistics/fake_counters.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using testing::sizes;
using testing::statistics_of_scope;
using testing::use;

constexpr std::size_t mib = std::size_t{1} << 20;

class PoolInScope : public ::testing::TestWithParam<Checks> {
protected:
    PoolOptions options() const { return {.checks = GetParam()}; }
    /// The counts of all scopes with this name since the test began. Tests share names, because the
    /// number of names in a process is limited.
    ScopeStatistics values(const char* of = name) const {
        ScopeStatistics values = statistics_of_scope(of);
        const ScopeStatistics& before = of == name ? before_ : before_of_other_;
        values.calls -= before.calls;
        values.allocations -= before.allocations;
        values.deallocations -= before.deallocations;
        values.requested_bytes -= before.requested_bytes;
        values.allocated_bytes -= before.allocated_bytes;
        values.deallocated_bytes -= before.deallocated_bytes;
        return values;
    }
    /// A name for one test. Needed for peaks, for which there is no difference between two times.
    static std::string own_name(const char* of) {
        return std::string(of) + testing::name_of_level({GetParam(), 0});
    }
    static constexpr const char* name = "PoolInScope";
    static constexpr const char* other_name = "PoolInScope, other thread";

private:
    ScopeStatistics before_ = statistics_of_scope(name);
    ScopeStatistics before_of_other_ = statistics_of_scope(other_name);
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolInScope, testing::check_levels(), testing::name_of_level);

TEST_P(PoolInScope, CallsAreCountedAsThePoolCountsThem) {
    MemoryPool pool(options());
    use(pool);
    const PoolStatistics before = pool.statistics();
    void* kept = nullptr;
    {
        const StatisticsScope scope(name);
        for (int i = 0; i < 300; ++i) use(pool);
        kept = pool.allocate(1000);
    }
    const PoolStatistics after = pool.statistics();
    pool.deallocate(kept);
    const ScopeStatistics counted = values();
    EXPECT_EQ(counted.allocations, after.allocations - before.allocations);
    EXPECT_EQ(counted.deallocations, after.deallocations - before.deallocations);
    EXPECT_EQ(counted.requested_bytes, after.requested_bytes - before.requested_bytes);
    EXPECT_EQ(counted.allocated_bytes, after.allocated_bytes - before.allocated_bytes);
    EXPECT_EQ(counted.growth_bytes(), 1024);
}

TEST_P(PoolInScope, FreeingEarlierBlocksCountsAsNegativeGrowth) {
    MemoryPool pool(options());
    void* const block = pool.allocate(1000);
    {
        const StatisticsScope scope(name);
        pool.deallocate(block, 1000);
    }
    EXPECT_EQ(values().growth_bytes(), -1024);
}

TEST_P(PoolInScope, PoolMayBeMadeAndDestroyedInside) {
    {
        const StatisticsScope scope(name);
        for (int i = 0; i < 3; ++i) {
            MemoryPool pool(options());
            use(pool);
        }
        EXPECT_FALSE(scope.growth().grew);
    }
    EXPECT_EQ(values().allocations, 3 * std::size(sizes));
    EXPECT_EQ(values().growth_bytes(), 0);
}

TEST_P(PoolInScope, PoolMayBeDestroyedOnAnotherThread) {
    auto pool = std::make_unique<MemoryPool>(options());
    {
        const StatisticsScope scope(name);
        use(*pool);
        std::thread([&] { pool.reset(); }).join();
    }
    EXPECT_EQ(values().allocations, std::size(sizes));
}

TEST_P(PoolInScope, CallsAreCountedOverManyPools) {
    std::vector<std::unique_ptr<MemoryPool>> pools;
    {
        const StatisticsScope scope(name);
        for (int i = 0; i < 300; ++i) {
            pools.push_back(std::make_unique<MemoryPool>(options()));
            pools.back()->deallocate(pools.back()->allocate(64), 64);
        }
    }
    EXPECT_EQ(values().allocations, 300U);
    EXPECT_EQ(values().deallocations, 300U);
}

TEST_P(PoolInScope, BlocksAreCountedWhereTheyAreFreed) {
    MemoryPool pool(options());
    {
        const StatisticsScope scope(name);
        void* const block = pool.allocate(1000);
        std::thread([&] {
            const StatisticsScope other(other_name);
            pool.deallocate(block);
        }).join();
    }
    EXPECT_EQ(values().growth_bytes(), 1024);
    EXPECT_EQ(values(other_name).growth_bytes(), -1024);
}

TEST_P(PoolInScope, ThreadThatReusesCountersHasItsOwnStatistics) {
    MemoryPool pool(options());
    const auto use_in_scope = [&] {
        const StatisticsScope scope(name);
        use(pool);
    };
    for (int i = 0; i < 3; ++i) std::thread(use_in_scope).join();
    EXPECT_EQ(values().calls, 3U);
    EXPECT_EQ(values().allocations, 3 * std::size(sizes));
}

TEST_P(PoolInScope, PeakOfLargeBlocksIsExact) {
    MemoryPool pool(options());
    {
        const StatisticsScope scope(own_name("large peak "));
        void* const one = pool.allocate(mib);
        void* const other = pool.allocate(2 * mib);
        pool.deallocate(one);
        pool.deallocate(other);
    }
    EXPECT_EQ(statistics_of_scope(own_name("large peak ")).peak_bytes, 3 * mib);
}

TEST_P(PoolInScope, PeakContainsAGrownLargeBlock) {
    MemoryPool pool(options());
    {
        const StatisticsScope scope(own_name("longest "));
        void* block = pool.allocate(mib);
        block = pool.reallocate(block, mib, 3 * mib);
        pool.deallocate(block, 3 * mib);
    }
    EXPECT_EQ(statistics_of_scope(own_name("longest ")).peak_bytes, 3 * mib);
}

TEST_P(PoolInScope, PeakLagsByAtMostTheMagazines) {
    MemoryPool pool(options());
    constexpr std::size_t true_peak = 32 * mib, max_in_magazines = 4 * mib;
    {
        const StatisticsScope scope(own_name("small peak "));
        std::vector<void*> blocks(true_peak / 1024);
        for (void*& block : blocks) block = pool.allocate(1024);
        for (void* const block : blocks) pool.deallocate(block, 1024);
    }
    EXPECT_LE(statistics_of_scope(own_name("small peak ")).peak_bytes, true_peak);
    EXPECT_GE(statistics_of_scope(own_name("small peak ")).peak_bytes,
              true_peak - max_in_magazines);
}

TEST_P(PoolInScope, OpenScopeReportsItsCountsSoFar) {
    MemoryPool pool(options());
    const StatisticsScope scope(own_name("so far "));
    void* const one = pool.allocate(mib);
    {
        const StatisticsScope inner(other_name);
        pool.deallocate(pool.allocate(3 * mib));
        EXPECT_EQ(inner.statistics().allocations, 1U);
        EXPECT_EQ(inner.statistics().peak_bytes, 3 * mib);
        // Peaks are updated in the innermost scope. The outer scope's query includes it.
        EXPECT_EQ(scope.statistics().peak_bytes, 4 * mib);
    }
    pool.deallocate(one);
    const ScopeStatistics values = scope.statistics();
    EXPECT_EQ(values.name, own_name("so far "));
    EXPECT_EQ(values.open, 1U);
    EXPECT_EQ(values.allocations, 2U);
    EXPECT_EQ(values.deallocations, 2U);
    EXPECT_EQ(values.requested_bytes, 4 * mib);
    EXPECT_EQ(values.growth_bytes(), 0);
    EXPECT_EQ(values.peak_bytes, 4 * mib);
}

TEST_P(PoolInScope, ScopeOfAnEndedThreadReportsNothing) {
    MemoryPool pool(options());
    std::optional<StatisticsScope> scope;
    std::thread([&] {
        scope.emplace(name);
        pool.deallocate(pool.allocate(mib));
    }).join();
    EXPECT_EQ(scope->statistics().allocations, 0U);
}

TEST_P(PoolInScope, ScopeContinuesInTheChildOfAFork) {
    MemoryPool pool(options());
    use(pool);
    std::optional<StatisticsScope> scope(std::in_place, name);
    void* const block = pool.allocate(1000);
    EXPECT_TRUE(testing::holds_in_child([&] {
        use(pool);
        pool.deallocate(block);
        scope.reset();
        const ScopeStatistics counted = values();
        return counted.calls == 1 && counted.open == 0 &&
               counted.allocations == std::size(sizes) + 1 && counted.growth_bytes() == 0;
    }));
    scope.reset();
    EXPECT_EQ(values().allocations, 1U);
    pool.deallocate(block);
}

TEST_P(PoolInScope, GrowthIsTheBytesLeftAllocated) {
    MemoryPool pool(options());
    std::vector<void*> left;
    const ScopeGrowth growth = measure_growth([&] {
        use(pool);
        for (int i = 0; i < 3; ++i) left.push_back(pool.allocate(64));
        left.push_back(pool.allocate(2 * mib));
    });
    EXPECT_EQ(to_text(growth), "grew by 2 MiB: 3 blocks of 64 B, 1 large block of 2 MiB");
    for (void* const block : left) pool.deallocate(block);
}

TEST_P(PoolInScope, ScopeThatFreesEverythingDoesNotGrow) {
    MemoryPool pool(options());
    const ScopeGrowth growth = measure_growth([&] { use(pool); });
    EXPECT_TRUE(growth) << to_text(growth);
}

}  // namespace
}  // namespace tensorpool
