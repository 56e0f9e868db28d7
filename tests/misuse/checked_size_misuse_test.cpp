// Sizes that do not fit the block, and blocks in use when the pool is destroyed.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "misuse/misuse.hpp"

namespace tensorpool {
namespace {

using testing::by_abort;
using testing::one_report;

constexpr std::size_t kib = 1024;

class CheckedSizeDeathTest : public ::testing::TestWithParam<Checks> {
protected:
    MemoryPool pool_{PoolOptions{.name = "mine", .checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Levels, CheckedSizeDeathTest,
                         ::testing::Values(Checks::basic, Checks::full), [](const auto& level) {
                             return level.param == Checks::full ? "full" : "basic";
                         });

TEST_P(CheckedSizeDeathTest, SizeOfAnotherBucket) {
    void* const block = pool_.allocate(100);
    for (const std::size_t bytes : {1, 64, 129, 4096}) {
        EXPECT_EXIT(pool_.deallocate(block, bytes), by_abort(),
                    one_report("mine", block, "belongs to bucket 128 B",
                               "not to the bucket of " + std::to_string(bytes) + " B"));
    }
    for (const std::size_t bytes : {64 * kib + 1, 10 * kib * kib, std::size_t{0}}) {
        EXPECT_EXIT(pool_.deallocate(block, bytes), by_abort(),
                    one_report("mine", block, "belongs to bucket 128 B",
                               "not to whole pages of " + std::to_string(bytes) + " B"));
    }
    pool_.deallocate(block);
}

TEST_P(CheckedSizeDeathTest, WrongSizeOfALargeBlock) {
    void* const block = pool_.allocate(300 * kib);
    for (const std::size_t bytes : {std::size_t{64}, 64 * kib}) {
        EXPECT_EXIT(pool_.deallocate(block, bytes), by_abort(),
                    one_report("mine", block, "belongs to whole pages of 320 KiB",
                               "not to the bucket of " + std::to_string(bytes) + " B"));
    }
    EXPECT_EXIT(pool_.deallocate(block, 321 * kib), by_abort(),
                one_report("mine", block, "belongs to whole pages of 320 KiB",
                           "not to whole pages of 328704 B"));
    pool_.deallocate(block);
}

TEST_P(CheckedSizeDeathTest, FreeWithoutTheAlignment) {
    void* const block = pool_.allocate(100, 4096);
    EXPECT_EXIT(
        pool_.deallocate(block, 100), by_abort(),
        one_report("mine", block, "belongs to whole pages of 4 KiB", "not to the bucket of 100 B"));
    pool_.deallocate(block, 100, 4096);
}

TEST_P(CheckedSizeDeathTest, WrongSizeOfAnAlignedBlock) {
    void* const block = pool_.allocate(100, 4096);
    EXPECT_EXIT(pool_.deallocate(block, 5000, 4096), by_abort(),
                one_report("mine", block, "belongs to whole pages of 4 KiB",
                           "not to whole pages of 5000 B"));
    pool_.deallocate(block, 100, 4096);
}

TEST(BasicChecks, SmallerSizeInTheSameBucketIsNotNoticed) {
    MemoryPool pool(PoolOptions{.checks = Checks::basic});
    pool.deallocate(pool.allocate(120), 70);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(FullChecksDeathTest, SizeBelowTheRequest) {
    MemoryPool pool(PoolOptions{.name = "mine", .checks = Checks::full});
    void* const small = pool.allocate(120);
    void* const large = pool.allocate(300 * kib);
    void* const aligned = pool.allocate(200, 256);
    void* const on_pages = pool.allocate(3000, 4096);
    EXPECT_EXIT(pool.deallocate(small, 119), by_abort(),
                one_report("mine", small, "was allocated with 120 B", "freed with 119 B"));
    EXPECT_EXIT(pool.deallocate(large, 299 * kib), by_abort(),
                one_report("mine", large, "was allocated with 307200 B", "freed with 306176 B"));
    EXPECT_EXIT(pool.deallocate(aligned, 199, 256), by_abort(),
                one_report("mine", aligned, "was allocated with 200 B", "freed with 199 B"));
    EXPECT_EXIT(pool.deallocate(on_pages, 2999, 4096), by_abort(),
                one_report("mine", on_pages, "was allocated with 3000 B", "freed with 2999 B"));
    pool.deallocate(small, 120);
    pool.deallocate(large, 300 * kib);
    pool.deallocate(aligned, 200, 256);
    pool.deallocate(on_pages, 3000, 4096);
}

TEST(FullChecksDeathTest, SizeBelowTheLastReallocation) {
    MemoryPool pool(PoolOptions{.name = "mine", .checks = Checks::full});
    void* const block = pool.allocate(70);
    ASSERT_EQ(pool.reallocate(block, 70, 120), block);
    EXPECT_EXIT(pool.deallocate(block, 119), by_abort(),
                one_report("mine", block, "was allocated with 120 B", "freed with 119 B"));
    pool.deallocate(block, 120);
}

TEST(FullChecksDeathTest, PoolDestroyedWithBlocksInUse) {
    const auto end_with_blocks = [] {
        MemoryPool pool(PoolOptions{.name = "mine", .checks = Checks::full});
        pool.allocate(100);
        pool.allocate(100 * kib);
    };
    EXPECT_EXIT(
        end_with_blocks(), by_abort(),
        ::testing::ContainsRegex("^tensorpool: fatal: leak ptr=[^ ]* size=[0-9]+ requested=- "
                                 "pool=mine thread=[0-9]+\n  pool 'mine': destroyed with "
                                 "2 blocks of [0-9.]+ KiB in use; expected none\n"));
}

TEST(BasicChecks, PoolMayBeDestroyedWithBlocksInUse) {
    MemoryPool pool(PoolOptions{.checks = Checks::basic});
    EXPECT_NE(pool.allocate(100), nullptr);
}

class ReallocationDeathTest : public ::testing::TestWithParam<Checks> {};

INSTANTIATE_TEST_SUITE_P(Levels, ReallocationDeathTest,
                         ::testing::Values(Checks::off, Checks::full, Checks::hardened));

TEST_P(ReallocationDeathTest, OldSizeBeyondTheBlockStopsBeforeOtherBlocksAreCopied) {
    MemoryPool pool(PoolOptions{.name = "mine", .checks = GetParam()});
    for (const std::size_t bytes : {100 * kib, std::size_t{100}}) {
        void* const block = pool.allocate(bytes);
        const std::size_t usable = pool.usable_size(block);
        EXPECT_EXIT((void)pool.reallocate(block, usable + 1, 16 * bytes), by_abort(),
                    "^tensorpool: fatal: wrong-size [^\n]*\n  pool 'mine': reallocate: block "
                    "0x[0-9a-f]+ has [0-9]+ B, not [0-9]+ B\n");
        void* const moved = pool.reallocate(block, usable, 16 * bytes);
        pool.deallocate(moved);
    }
}

}  // namespace
}  // namespace tensorpool
