// The heap profile of pools that sample every allocation.

#include <tensorpool/budget.hpp>
#include <tensorpool/heap_profile.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "platform/tools/memory_tools.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// A block of each kind of size: smallest, largest bucket, whole pages, too large for magazines.
constexpr std::size_t sizes[] = {1,    64,       100,          1000,    4 * kib,
                                 5000, 64 * kib, 64 * kib + 1, 3 * mib, 40 * mib};

HeapProfile profile() {
    return StatisticsReader::attach(static_cast<std::uint64_t>(getpid())).heap_profile();
}

struct Sums {
    std::uint64_t live_bytes = 0;
    double live_blocks = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t samples = 0;
};

Sums sums() {
    Sums all;
    for (const ProfileSite& site : profile().sites) {
        all.live_bytes += site.live_bytes;
        all.live_blocks += site.live_blocks;
        all.allocated_bytes += site.allocated_bytes;
        all.samples += site.samples;
    }
    return all;
}

PoolOptions named() {
    PoolOptions options;
    options.name = "mine";
    options.checks = Checks::off;  // pools with checks, the default for debugging, take no samples
    return options;
}

class HeapProfileOfPool : public ::testing::Test {
protected:
    HeapProfileOfPool() { set_profile_interval(1); }
    ~HeapProfileOfPool() override { set_profile_interval(0); }
    void SetUp() override {
        if (platform::has_memory_tool()) GTEST_SKIP() << "programs under a tool take no samples";
    }

    /// What the sites gained since the test began.
    Sums gained() const {
        Sums now = sums();
        now.live_bytes -= before_.live_bytes;
        now.live_blocks -= before_.live_blocks;
        now.allocated_bytes -= before_.allocated_bytes;
        now.samples -= before_.samples;
        return now;
    }

    MemoryPool pool_{named()};
    const Sums before_ = sums();
};

TEST_F(HeapProfileOfPool, CountsEachBlockWhileItIsInUse) {
    std::uint64_t bytes = 0;
    std::vector<void*> blocks;
    for (const std::size_t size : sizes) {
        blocks.push_back(pool_.allocate(size));
        bytes += size;
        EXPECT_EQ(gained().live_bytes, bytes) << size;
        EXPECT_EQ(gained().live_blocks, static_cast<double>(blocks.size()));
    }
    for (std::size_t i = 0; i != blocks.size(); ++i) {
        pool_.deallocate(blocks[i], sizes[i]);
        bytes -= sizes[i];
        EXPECT_EQ(gained().live_bytes, bytes) << sizes[i];
    }
    EXPECT_EQ(gained().live_blocks, 0);
    EXPECT_EQ(gained().samples, std::size(sizes));
}

TEST_F(HeapProfileOfPool, StatisticsAreThoseOfAPoolWithoutIt) {
    set_profile_interval(0);
    MemoryPool plain(named());
    set_profile_interval(1);
    const auto use = [](MemoryPool& pool) {
        std::vector<void*> blocks;
        for (const std::size_t size : sizes) blocks.push_back(pool.allocate(size));
        const PoolStatistics during = pool.statistics();
        for (void* const block : blocks) pool.deallocate(block);
        const PoolStatistics after = pool.statistics();
        EXPECT_EQ(after.in_use_bytes, 0U);
        pool.trim();
        EXPECT_EQ(pool.statistics().capacity_bytes, 0U);
        return during;
    };
    const PoolStatistics sampled = use(pool_);
    set_profile_interval(0);
    const PoolStatistics without = use(plain);
    EXPECT_EQ(sampled.in_use_bytes, without.in_use_bytes);
    EXPECT_EQ(sampled.requested_bytes, without.requested_bytes);
    EXPECT_EQ(sampled.allocations, without.allocations);
    EXPECT_EQ(sampled.large.allocations, without.large.allocations);
    for (std::size_t i = 0; i != std::size(sampled.buckets); ++i) {
        EXPECT_EQ(sampled.buckets[i].allocations, without.buckets[i].allocations) << i;
        EXPECT_EQ(sampled.buckets[i].in_use_bytes, without.buckets[i].in_use_bytes) << i;
    }
}

TEST_F(HeapProfileOfPool, CapacityIsTheSumOfItsParts) {
    std::vector<void*> blocks;
    const auto check = [&] {
        const PoolStatistics now = pool_.statistics();
        EXPECT_EQ(now.capacity_bytes, now.in_use_bytes + now.parked_bytes + now.depot_bytes +
                                          now.span_bytes + now.cached_bytes + now.free_bytes)
            << blocks.size();
    };
    for (int round = 0; round < 3; ++round) {
        for (const std::size_t size : sizes) {
            blocks.push_back(pool_.allocate(size));
            check();
        }
    }
    while (!blocks.empty()) {
        pool_.deallocate(blocks.back());
        blocks.pop_back();
        check();
    }
}

TEST_F(HeapProfileOfPool, BlocksAreWritableAlignedAndApart) {
    std::vector<char*> blocks;
    for (int i = 0; i < 200; ++i) {
        for (const std::size_t size : {std::size_t{100}, std::size_t{5000}}) {
            for (const std::size_t alignment : {64, 1024, 4096}) {
                auto* const block = static_cast<char*>(pool_.allocate(size, alignment));
                EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
                EXPECT_GE(pool_.usable_size(block), size);
                EXPECT_TRUE(pool_.owns(block));
                std::memset(block, static_cast<int>(blocks.size() % 251), size);
                blocks.push_back(block);
            }
        }
    }
    for (std::size_t i = 0; i != blocks.size(); ++i) {
        EXPECT_EQ(blocks[i][99], static_cast<char>(i % 251));
        pool_.deallocate(blocks[i]);
    }
    EXPECT_EQ(gained().live_bytes, 0U);
}

TEST_F(HeapProfileOfPool, EveryKindOfFreeEndsTheUse) {
    for (const std::size_t size : sizes) {
        pool_.deallocate(pool_.allocate(size));
        pool_.deallocate(pool_.allocate(size), size);
        pool_.deallocate(pool_.allocate(size, 256), size, 256);
        std::thread([&, block = pool_.allocate(size)] { pool_.deallocate(block, size); }).join();
        EXPECT_EQ(gained().live_bytes, 0U) << size;
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(HeapProfileOfPool, ZeroedBlocksAreZero) {
    for (const std::size_t size : {std::size_t{1000}, 64 * kib}) {
        void* const dirty = pool_.allocate(size);
        std::memset(dirty, 1, size);
        pool_.deallocate(dirty, size);
        auto* const block = static_cast<char*>(pool_.allocate_zeroed(size, 1));
        EXPECT_TRUE(std::all_of(block, block + size, [](char c) { return c == 0; }));
        pool_.deallocate(block, size);
    }
}

TEST_F(HeapProfileOfPool, ResizedBlocksCountWithTheirNewSize) {
    for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{100, 1000},
                                   {1000, 100},
                                   {1000, 2 * mib},
                                   {2 * mib, 9 * mib},
                                   {9 * mib, 40 * mib}}) {
        void* const block = pool_.allocate(from);
        std::memset(block, 1, from);
        auto* const resized = static_cast<char*>(pool_.reallocate(block, from, to));
        EXPECT_EQ(resized[std::min(from, to) - 1], 1);
        EXPECT_EQ(gained().live_bytes, to) << from;
        pool_.deallocate(resized, to);
        EXPECT_EQ(gained().live_bytes, 0U) << from;
    }
}

TEST_F(HeapProfileOfPool, PoolThatIsDestroyedHoldsNothing) {
    {
        MemoryPool other({.checks = Checks::off});
        for (const std::size_t size : sizes) (void)other.allocate(size);
        EXPECT_GT(gained().live_bytes, 43 * mib);
    }
    EXPECT_EQ(gained().live_bytes, 0U);
}

TEST_F(HeapProfileOfPool, StacksLeadToTheProgram) {
    void* const block = pool_.allocate(1000);
    const HeapProfile now = profile();
    EXPECT_EQ(now.interval, 1U);
    char program[4096] = {};
    ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
    EXPECT_TRUE(std::ranges::any_of(now.sites,
                                    [](const ProfileSite& site) { return !site.stack.empty(); }));
    for (const ProfileSite& site : now.sites) {
        if (site.stack.empty()) continue;
        EXPECT_TRUE(std::ranges::any_of(site.stack, [&](std::uint32_t frame) {
            return now.frames.at(frame).module == program;
        }));
    }
    pool_.deallocate(block);
}

TEST_F(HeapProfileOfPool, KeepsWhatWasAliveAtThePeak) {
    void* const peak = pool_.allocate(256 * mib);
    EXPECT_GE(profile().peak_bytes, 256 * mib);
    pool_.deallocate(peak);
    void* const block = pool_.allocate(1 * mib);
    const HeapProfile now = profile();
    EXPECT_GE(now.peak_bytes, 256 * mib);
    EXPECT_NE(now.peak_unix_ns, 0U);
    EXPECT_TRUE(std::ranges::any_of(
        now.sites, [](const ProfileSite& site) { return site.peak_bytes >= 256 * mib; }));
    pool_.deallocate(block);
}

TEST(HeapProfileOfSmallPool, EstimatesAreAtMostWhatPoolsCounted) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "programs under a tool take no samples";
    const auto counted = [](std::uint64_t PoolStatistics::*bytes) {
        auto reader = StatisticsReader::attach(static_cast<std::uint64_t>(getpid()));
        std::uint64_t all = 0;
        for (const PoolStatistics& pool : reader.snapshot().pools) all += pool.*bytes;
        return all;
    };
    // Each sample stands for as much as there is, and there may be several.
    set_profile_interval(4 * mib);
    for (int round = 0; round < 40; ++round) {
        MemoryPool pool(named());
        const std::uint64_t peak_before = profile().peak_bytes;
        std::vector<void*> blocks;
        for (std::size_t i = 0; i != 4 * mib / kib; ++i) blocks.push_back(pool.allocate(kib));
        EXPECT_LE(sums().live_bytes, counted(&PoolStatistics::in_use_bytes));
        for (void* const block : blocks) pool.deallocate(block, kib);
        EXPECT_LE(profile().peak_bytes,
                  std::max(peak_before, counted(&PoolStatistics::peak_in_use_bytes)));
    }
    set_profile_interval(0);
}

TEST_F(HeapProfileOfPool, LifetimesCountEachFreedBlockOnce) {
    const auto freed = [] {
        double all = 0;
        for (const ProfileSite& site : profile().sites) {
            for (const double blocks : site.lifetimes) all += blocks;
        }
        return all;
    };
    const double before = freed();
    for (const std::size_t size : sizes) pool_.deallocate(pool_.allocate(size));
    EXPECT_EQ(freed() - before, static_cast<double>(std::size(sizes)));
}

TEST_F(HeapProfileOfPool, ThreadsMayUseItAtOnce) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) {
                void* const small = pool_.allocate(100);
                void* const large = pool_.allocate(100 * kib);
                pool_.deallocate(small, 100);
                pool_.deallocate(large);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(gained().live_bytes, 0U);
    EXPECT_EQ(gained().samples, 8000U);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    pool_.trim();
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
}

TEST_F(HeapProfileOfPool, ChildOfAForkHasAProfileOfItsOwn) {
    void* const small = pool_.allocate(100);
    void* const large = pool_.allocate(mib);
    const std::uint64_t alive = gained().live_bytes;
    EXPECT_TRUE(testing::holds_in_child([&] {
        if (gained().live_bytes != alive) return false;
        pool_.deallocate(small, 100);
        pool_.deallocate(large);
        pool_.deallocate(pool_.allocate(50));
        return gained().live_bytes == 0;
    }));
    EXPECT_EQ(gained().live_bytes, alive);
    pool_.deallocate(small, 100);
    pool_.deallocate(large);
}

TEST_F(HeapProfileOfPool, GuardedBlocksAreSampledToo) {
    PoolOptions options = named();
    options.checks = Checks::sampled;
    options.guard_share = 1;
    MemoryPool guarding(options);
    for (const std::size_t size : {std::size_t{100}, 100 * kib}) {
        void* const block = guarding.allocate(size);
        EXPECT_EQ(gained().live_bytes, size);
        guarding.deallocate(block, size);
        EXPECT_EQ(gained().live_bytes, 0U);
    }
}

TEST_F(HeapProfileOfPool, FreeOfAChargedBlockEndsTheSampleAndTheCharge) {
    Budget budget("request");
    for (const std::size_t size : {std::size_t{1000}, 300 * kib}) {
        void* block = nullptr;
        {
            const BudgetScope scope(budget);
            block = pool_.allocate(size);
        }
        EXPECT_EQ(gained().live_bytes, size);
        EXPECT_EQ(budget.in_use(), pool_.usable_size(block));
        pool_.deallocate(block, size);
        EXPECT_EQ(gained().live_bytes, 0U);
        EXPECT_EQ(budget.in_use(), 0U);
    }
    {
        MemoryPool ended(named());
        const BudgetScope scope(budget);
        (void)ended.allocate(1000);
        (void)ended.allocate(mib);
        EXPECT_GT(gained().live_bytes, mib);
    }
    EXPECT_EQ(gained().live_bytes, 0U) << "the pool was destroyed";
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST_F(HeapProfileOfPool, LimitIsKept) {
    PoolOptions options = named();
    options.max_capacity = 8 * mib;
    MemoryPool limited(options);
    std::vector<void*> blocks;
    while (void* const block = limited.try_allocate(1000)) blocks.push_back(block);
    EXPECT_LE(limited.statistics().peak_capacity_bytes, 8 * mib);
    EXPECT_GT(blocks.size(), 100U);
    for (void* const block : blocks) limited.deallocate(block);
    EXPECT_EQ(limited.get_total_allocated(), 0U);
}

TEST_F(HeapProfileOfPool, FreeMemoryOfAPoolAtItsLimitMakesWayForSamples) {
    PoolOptions options = named();
    options.max_capacity = 8 * mib;
    MemoryPool limited(options);
    limited.deallocate(limited.allocate(7 * mib));
    void* const block = limited.allocate(1000);
    EXPECT_EQ(gained().live_bytes, 1000U);
    limited.deallocate(block, 1000);
}

TEST_F(HeapProfileOfPool, BlockThatIsServedAfterGatheringIsSampled) {
    PoolOptions options = named();
    options.max_capacity = 8 * mib;
    MemoryPool limited(options);
    std::vector<void*> blocks;
    while (void* const block = limited.try_allocate(70 * kib)) blocks.push_back(block);
    for (void* const block : blocks) limited.deallocate(block);
    EXPECT_EQ(gained().live_bytes, 0U);
    void* const all = limited.allocate(6 * mib);
    EXPECT_EQ(gained().live_bytes, 6 * mib);
    limited.deallocate(all);
}

TEST_F(HeapProfileOfPool, PoolsWithChecksOfEveryCallTakeNoSamples) {
    for (const Checks checks : {Checks::basic, Checks::full, Checks::hardened}) {
        PoolOptions options = named();
        options.checks = checks;
        MemoryPool checked(options);
        checked.deallocate(checked.allocate(1000), 1000);
        checked.deallocate(checked.allocate(mib));
    }
    EXPECT_EQ(gained().samples, 0U);
}

TEST(HeapProfile, IntervalOfZeroTakesNoSamples) {
    set_profile_interval(0);
    EXPECT_EQ(profile_interval(), 0U);
    MemoryPool pool(named());
    const std::uint64_t before = sums().samples;
    for (int i = 0; i < 1000; ++i) pool.deallocate(pool.allocate(mib));
    EXPECT_EQ(sums().samples, before);
}

using HeapProfileDeath = HeapProfileOfPool;

TEST_F(HeapProfileDeath, SecondFreeOfASampledBlockIsReported) {
    void* const block = pool_.allocate(100);
    pool_.deallocate(block);
    EXPECT_DEATH(pool_.deallocate(block), "double-free");
}

TEST_F(HeapProfileDeath, FreeInsideASampledBlockIsReported) {
    char* const block = static_cast<char*>(pool_.allocate(1000));
    EXPECT_DEATH(pool_.deallocate(block + 64), "interior-free");
}

}  // namespace
}  // namespace tensorpool
