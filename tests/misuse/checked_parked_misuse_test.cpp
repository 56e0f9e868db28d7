// Faults with free blocks that are parked: in a magazine of their thread or of another one, between
// threads, or taken back. They are found in each of these states.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "blocks/worker.hpp"
#include "misuse/misuse.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using testing::by_abort;
using testing::one_report;
using testing::Sized;
using testing::Worker;

constexpr std::size_t kib = 1024;

class CheckedParkedDeathTest : public ::testing::TestWithParam<std::size_t> {
protected:
    std::size_t bytes() const { return GetParam(); }
    std::vector<char*> allocate(std::size_t count) {
        std::vector<char*> blocks(count);
        for (char*& block : blocks) block = static_cast<char*>(pool_.allocate(bytes()));
        return blocks;
    }
    void deallocate(const std::vector<char*>& blocks) {
        for (char* const block : blocks) pool_.deallocate(block, bytes());
    }
    std::size_t parked_bytes() const {
        std::size_t parked = 0;
        for (const BucketStatistics& bucket : pool_.statistics().buckets) {
            parked += bucket.parked_bytes;
        }
        return parked;
    }
    /// Expects that every call on the free blocks fails. Checks up to eight of them.
    void expect_faults_found(const std::vector<char*>& blocks) {
        for (std::size_t i = 0; i < blocks.size();
             i += std::max<std::size_t>(blocks.size() / 8, 1)) {
            char* const block = blocks[i];
            EXPECT_FALSE(pool_.owns(block + bytes() / 2));
            EXPECT_EQ(pool_.usable_size(block), 0U);
            for (const Sized sized : {Sized::no, Sized::yes}) {
                EXPECT_EXIT(testing::free_block(pool_, block, bytes(), sized), by_abort(),
                            one_report("mine", block, "was freed twice"));
            }
            EXPECT_EXIT(pool_.deallocate(block + 1, bytes()), by_abort(),
                        one_report("mine", block + 1, "was freed twice"));
            EXPECT_EXIT(pool_.reallocate(block, bytes(), 2 * bytes()), by_abort(),
                        one_report("mine", block, "was freed twice"));
        }
    }

    MemoryPool pool_{PoolOptions{.name = "mine", .checks = Checks::full}};
    // Keeps spans in use, so that free blocks in them differ from addresses that never were blocks.
    std::vector<char*> neighbours_ = allocate(1);
};

INSTANTIATE_TEST_SUITE_P(Levels, CheckedParkedDeathTest,
                         ::testing::Values<std::size_t>(64, 1000, 64 * kib),
                         [](const auto& bytes) { return "full" + std::to_string(bytes.param); });

TEST_P(CheckedParkedDeathTest, BlockInAMagazineOfItsThread) {
    const std::vector<char*> blocks = allocate(1);
    deallocate(blocks);
    ASSERT_GT(parked_bytes(), 0U);
    expect_faults_found(blocks);
    deallocate(neighbours_);
}

TEST_P(CheckedParkedDeathTest, BlockBetweenThreads) {
    std::vector<char*> blocks;
    std::thread([&] {
        blocks = allocate(20);
        deallocate(blocks);
    }).join();
    expect_faults_found(blocks);
    deallocate(neighbours_);
}

TEST_P(CheckedParkedDeathTest, BlockInAMagazineOfAnotherThread) {
    std::vector<char*> blocks;
    Worker worker;
    worker.does([&] {
        blocks = allocate(1);
        deallocate(blocks);
    });
    ASSERT_GT(parked_bytes(), 0U);
    expect_faults_found(blocks);
    deallocate(neighbours_);
}

TEST_P(CheckedParkedDeathTest, BlockTakenBackFromAnotherThread) {
    if (!platform::prepare_fences()) GTEST_SKIP() << "no fences of other threads here";
    std::vector<char*> blocks;
    Worker worker;
    worker.does([&] {
        blocks = allocate(1);
        deallocate(blocks);
    });
    pool_.trim();
    ASSERT_EQ(parked_bytes(), 0U);
    expect_faults_found(blocks);
    deallocate(neighbours_);
}

TEST_P(CheckedParkedDeathTest, BlockThatWasNeverAllocated) {
    // The neighbour was moved in with others if a magazine begins with more than one block.
    char* const beside = neighbours_[0] + pool_.usable_size(neighbours_[0]);
    if (bytes() <= 16 * kib) {
        EXPECT_EXIT(pool_.deallocate(beside), by_abort(),
                    one_report("mine", beside, "was freed twice or was never allocated"));
    }
    deallocate(neighbours_);
}

TEST_P(CheckedParkedDeathTest, ReusedBlockIsValidAgain) {
    const std::vector<char*> blocks = allocate(40);
    for (unsigned round = 0; round < 3; ++round) {
        for (char* const block : blocks)
            EXPECT_EQ(pool_.usable_size(block), pool_.usable_size(blocks[0]));
        deallocate(blocks);
        for (char* const block : blocks) EXPECT_FALSE(pool_.owns(block));
        const std::vector<char*> again = allocate(40);
        EXPECT_TRUE(std::is_permutation(blocks.begin(), blocks.end(), again.begin()));
    }
    deallocate(blocks);
    deallocate(neighbours_);
}

// Both threads may look at the block before either has freed it.
TEST_P(CheckedParkedDeathTest, ConcurrentDoubleFree) {
    for (const std::size_t size : {bytes(), 300 * kib}) {
        EXPECT_EXIT(
            {
                for (unsigned round = 0; round < 20'000; ++round) {
                    void* const block = pool_.allocate(size);
                    std::thread other([&] { pool_.deallocate(block, size); });
                    pool_.deallocate(block, size);
                    other.join();
                }
            },
            by_abort(), "(freed twice|never allocated)");
    }
    deallocate(neighbours_);
}

}  // namespace
}  // namespace tensorpool
