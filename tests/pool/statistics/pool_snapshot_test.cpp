// The pools that a snapshot shows. How snapshots are taken and printed is tested in
// tests/statistics.

#include <tensorpool/snapshot.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "pool/check_levels.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

std::vector<std::string> names_in(const Snapshot& snapshot) {
    std::vector<std::string> names;
    for (const PoolStatistics& pool : snapshot.pools) names.emplace_back(pool.name);
    return names;
}

std::ptrdiff_t count_of(const std::string& name) {
    const std::vector<std::string> names = names_in(take_snapshot());
    return std::count(names.begin(), names.end(), name);
}

std::unique_ptr<MemoryPool> make(const std::string& name) {
    return std::make_unique<MemoryPool>(PoolOptions{.name = name});
}

TEST(PoolSnapshot, ShowsEachPoolByNameInOrderOfCreation) {
    const auto one = make("one");
    const auto two = make("two");
    auto names = names_in(take_snapshot());
    std::erase(names, "global");
    EXPECT_EQ(names, (std::vector<std::string>{"one", "two"}));
}

TEST(PoolSnapshot, ShowsNoDestroyedPool) {
    auto one = make("one");
    const auto two = make("two");
    one.reset();
    EXPECT_EQ(count_of("one"), 0);
    EXPECT_EQ(count_of("two"), 1);
    one = make("one");
    EXPECT_EQ(count_of("one"), 1) << "another pool of the same name";
}

TEST(PoolSnapshot, ShowsTheGlobalPoolAfterFirstUse) {
    EXPECT_EQ(get_global_memory_pool().allocate(0), nullptr);
    get_global_memory_pool().deallocate(get_global_memory_pool().allocate(100), 100);
    EXPECT_EQ(count_of("global"), 1);
}

TEST(PoolSnapshot, ShowsNoPoolWhoseConstructorThrew) {
    EXPECT_THROW(MemoryPool({.name = "refused", .max_allocation = 0}), std::invalid_argument);
    EXPECT_THROW(MemoryPool({.name = "refused", .initial_capacity = std::size_t{1} << 60}),
                 AllocationError);
    EXPECT_EQ(count_of("refused"), 0);
}

class PoolSnapshotValues : public ::testing::TestWithParam<Checks> {};

INSTANTIATE_TEST_SUITE_P(Checks, PoolSnapshotValues, testing::check_levels(),
                         testing::name_of_level);

TEST_P(PoolSnapshotValues, EqualThePoolsStatistics) {
    MemoryPool pool({.name = "mine", .checks = GetParam()});
    void* const small = pool.allocate(1000);
    void* const large = pool.allocate(300'000);
    const Snapshot snapshot = take_snapshot();
    const auto is_mine = [](const PoolStatistics& values) {
        return std::string_view(values.name) == "mine";
    };
    const auto mine = std::find_if(snapshot.pools.begin(), snapshot.pools.end(), is_mine);
    ASSERT_NE(mine, snapshot.pools.end());
    EXPECT_EQ(to_json(*mine), to_json(pool.statistics()));
    pool.deallocate(small);
    pool.deallocate(large);
}

TEST(PoolSnapshot, WorksInTheChildOfAFork) {
    const auto pool = make("mine");
    EXPECT_TRUE(testing::holds_in_child([] { return count_of("mine") == 1; }));
}

// Threads ----------------------------------------------------------------------------------------

/// Makes, uses and destroys pools until this object is destroyed.
class PoolMakers {
public:
    explicit PoolMakers(unsigned threads) {
        for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    }
    ~PoolMakers() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    unsigned lives() const { return lives_; }

private:
    void work() {
        while (!stop_) {
            MemoryPool pool({.name = "short"});
            void* const block = pool.allocate(1000);
            pool.deallocate(pool.allocate(100'000));
            std::memset(block, 1, 1000);
            pool.deallocate(block, 1000);
            ++lives_;
        }
    }

    std::atomic<bool> stop_ = false;
    std::atomic<unsigned> lives_ = 0;
    std::vector<std::thread> threads_;
};

// A slow machine may find each of its eight readings overtaken by a change, and says so.
void expect_makes_sense(const Snapshot& snapshot) {
    if (!snapshot.consistent) return;
    std::ptrdiff_t staying = 0;
    for (const PoolStatistics& pool : snapshot.pools) {
        const std::string_view name = pool.name;
        if (name == "global") continue;
        ASSERT_TRUE(name == "stays" || name == "short") << name;
        ASSERT_EQ(pool.version, PoolStatistics::current_version);
        ASSERT_LE(pool.in_use_bytes, pool.peak_in_use_bytes);
        ASSERT_GE(pool.allocations, pool.deallocations);
        ASSERT_LE(pool.allocations, 2U);
        staying += name == "stays" ? 1 : 0;
    }
    ASSERT_EQ(staying, 1);
}

TEST(PoolSnapshotUnderThreads, ShowsOnlyCompletePoolsWhileOthersAreMadeAndDestroyed) {
    const auto stays = make("stays");
    {
        const PoolMakers makers(2);
        std::thread other([] {
            for (unsigned i = 0; i < 500; ++i) expect_makes_sense(take_snapshot());
        });
        for (unsigned i = 0; i < 500 || makers.lives() < 100; ++i) {
            expect_makes_sense(take_snapshot());
        }
        other.join();
    }
    const Snapshot last = take_snapshot();
    EXPECT_TRUE(last.consistent);
    expect_makes_sense(last);
}

}  // namespace
}  // namespace tensorpool
