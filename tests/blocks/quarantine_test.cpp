#include "blocks/bucket_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tensorpool::blocks {
namespace {

using Block = Quarantine::Block;

class QuarantineTest : public ::testing::Test {
protected:
    static constexpr std::size_t limit = 1600;

    QuarantineTest() { quarantine_.limit(limit, published_); }

    static Block block(std::size_t number, std::size_t bytes) {
        return {reinterpret_cast<void*>(number), bytes};
    }
    /// Adds a block and returns the numbers of those that leave.
    std::vector<std::size_t> add(std::size_t number, std::size_t bytes, unsigned max_count = 64) {
        Block taken[64];
        return numbers(taken, quarantine_.exchange(block(number, bytes), taken, max_count));
    }
    static std::vector<std::size_t> numbers(const Block* blocks, unsigned count) {
        std::vector<std::size_t> result(count);
        std::transform(blocks, blocks + count, result.begin(),
                       [](const Block& one) { return reinterpret_cast<std::size_t>(one.begin); });
        return result;
    }

    std::atomic<std::uint64_t> published_ = 0;
    Quarantine quarantine_;
};

using Numbers = std::vector<std::size_t>;

TEST_F(QuarantineTest, OldestBlocksLeaveWhenTheLimitIsExceeded) {
    for (std::size_t i = 1; i <= 16; ++i) EXPECT_EQ(add(i, 100), Numbers());
    EXPECT_EQ(published_.load(), limit);
    // Down to fifteen sixteenths.
    EXPECT_EQ(add(17, 100), Numbers({1, 2}));
    EXPECT_EQ(published_.load(), 1500U);
    EXPECT_EQ(add(18, 100), Numbers());
}

TEST_F(QuarantineTest, NoMoreLeaveThanTheCallerHasRoomFor) {
    for (std::size_t i = 1; i <= 16; ++i) (void)add(i, 100);
    EXPECT_EQ(add(17, 100, 1), Numbers({1}));
    EXPECT_EQ(add(18, 100, 1), Numbers({2}));
}

TEST_F(QuarantineTest, BlockThatExceedsTheLimitAloneComesBack) {
    EXPECT_EQ(add(1, limit + 1), Numbers({1}));
    EXPECT_EQ(published_.load(), 0U);
    EXPECT_EQ(add(2, limit), Numbers());
}

TEST_F(QuarantineTest, HoldsABoundedNumberOfBlocksAndSeveralLeaveThen) {
    std::size_t inside = 0;
    std::size_t next_to_leave = 1;
    std::size_t calls_with_leavers = 0;
    for (std::size_t i = 1; i <= 200'000; ++i) {
        const Numbers left = add(i, 0);
        inside += 1 - left.size();
        for (const std::size_t number : left) EXPECT_EQ(number, next_to_leave++);
        calls_with_leavers += left.empty() ? 0 : 1;
        ASSERT_LT(inside, std::size_t{1} << 16);
    }
    EXPECT_GT(inside, 50'000U);
    EXPECT_LT(calls_with_leavers, 20'000U);
}

TEST_F(QuarantineTest, TakeReturnsAllInOrder) {
    for (std::size_t i = 1; i <= 5; ++i) (void)add(i, 100);
    Block taken[3];
    EXPECT_EQ(numbers(taken, quarantine_.take(taken, 3)), Numbers({1, 2, 3}));
    EXPECT_EQ(published_.load(), 200U);
    EXPECT_EQ(numbers(taken, quarantine_.take(taken, 3)), Numbers({4, 5}));
    EXPECT_EQ(published_.load(), 0U);
    EXPECT_EQ(quarantine_.take(taken, 3), 0U);
}

TEST_F(QuarantineTest, EachBlockLeavesOnceWithSeveralThreads) {
    constexpr std::size_t count = 20'000;
    std::vector<std::atomic<int>> seen(3 * count + 1);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread != 3; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::size_t i = 1; i <= count; ++i) {
                for (const std::size_t number : add(thread * count + i, 10)) ++seen[number];
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    Block taken[64];
    while (const unsigned left = quarantine_.take(taken, 64)) {
        for (const std::size_t number : numbers(taken, left)) ++seen[number];
    }
    EXPECT_EQ(seen[0].load(), 0);
    EXPECT_TRUE(std::all_of(seen.begin() + 1, seen.end(), [](const auto& n) { return n == 1; }));
}

}  // namespace
}  // namespace tensorpool::blocks
