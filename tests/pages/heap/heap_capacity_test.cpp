#include "pages/heap/heap_capacity.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "pages/heap/test_heap.hpp"

namespace tensorpool::pages {
namespace {

using testing::FakeSystem;

constexpr std::size_t kib = 1024;

/// The capacity of a heap that grows by steps of 1 MiB up to 4 MiB, while 64 GiB are available.
class HeapCapacityTest : public ::testing::Test {
protected:
    HeapCapacityTest() { FakeSystem::set(std::size_t{64} << 30, 0); }

    static HeapOptions limited() {
        HeapOptions options = testing::plain_options();
        options.max_capacity = 4096 * kib;
        options.growth = {.step = 1024 * kib, .factor = 0.0, .fraction = 1.0};
        return options;
    }
    std::size_t grow(std::size_t needed, std::size_t wanted, bool succeeds = true) {
        return capacity.grow(needed, wanted, path, [&](std::size_t) { return succeeds; });
    }

    statistics::PoolTotals totals{};
    limits::CommitBudget process{FakeSystem::source()};
    std::mutex growth;
    SlowPath path;
    HeapCapacity capacity{growth, process, limited(), totals};
};

TEST_F(HeapCapacityTest, GrowthIsChargedAndCounted) {
    EXPECT_EQ(grow(100 * kib, 400 * kib), 400 * kib);
    EXPECT_EQ(capacity.bytes(), 400 * kib);
    EXPECT_EQ(process.committed(), 400 * kib);
    EXPECT_EQ(path.grown, 400 * kib);
    EXPECT_EQ(totals.growths, 1U);
    EXPECT_EQ(totals.peak_capacity_bytes, 400 * kib);
}

TEST_F(HeapCapacityTest, FailedGrowthChangesNothing) {
    EXPECT_EQ(grow(100 * kib, 400 * kib, false), 0U);
    EXPECT_EQ(capacity.bytes(), 0U);
    EXPECT_EQ(process.committed(), 0U);
    EXPECT_EQ(path.grown, 0U);
}

TEST_F(HeapCapacityTest, RefusalSaysWhichLimitWouldSuffice) {
    grow(4000 * kib, 4000 * kib);
    EXPECT_EQ(capacity.room_for(96 * kib, path), 96 * kib);
    EXPECT_EQ(path.shortage, 0U);
    EXPECT_EQ(capacity.room_for(100 * kib, path), 0U);
    EXPECT_STREQ(path.refusal.limit, "max_capacity");
    EXPECT_EQ(path.refusal.needed_limit, 4100 * kib);
    EXPECT_EQ(path.shortage, 4 * kib);
}

TEST_F(HeapCapacityTest, SurplusStaysWithinStepExtentAndLimit) {
    constexpr std::size_t all = SIZE_MAX / 2;
    EXPECT_EQ(capacity.with_surplus(4 * kib, all, all, SIZE_MAX), 1024 * kib);
    EXPECT_EQ(capacity.with_surplus(2000 * kib, all, all, SIZE_MAX), 2048 * kib)
        << "in units of 64 KiB";
    EXPECT_EQ(capacity.with_surplus(4 * kib, 20 * kib, all, SIZE_MAX), 20 * kib);
    EXPECT_EQ(capacity.with_surplus(4 * kib, all, 9 * kib, SIZE_MAX), 8 * kib);
    EXPECT_EQ(capacity.with_surplus(4 * kib, all, all, 256 * kib), 256 * kib);
}

TEST_F(HeapCapacityTest, MemoryThatIsGivenBackIsRefunded) {
    grow(400 * kib, 400 * kib);
    capacity.take_out(300 * kib);
    EXPECT_EQ(capacity.bytes(), 100 * kib);
    EXPECT_EQ(process.committed(), 400 * kib) << "its pages are not dropped yet";
    capacity.put_back(100 * kib);
    capacity.give_back(200 * kib);
    EXPECT_EQ(capacity.bytes(), 200 * kib);
    EXPECT_EQ(process.committed(), 200 * kib);
    EXPECT_EQ(totals.given_back_bytes, 200 * kib);
}

TEST_F(HeapCapacityTest, OutsideMemoryCountsWithinTheLimit) {
    grow(4000 * kib, 4000 * kib);
    EXPECT_FALSE(capacity.charge_outside(97 * kib));
    EXPECT_TRUE(capacity.charge_outside(96 * kib));
    EXPECT_EQ(capacity.bytes(), 4096 * kib);
    capacity.refund_outside(96 * kib);
    EXPECT_EQ(process.committed(), 4000 * kib);
}

TEST_F(HeapCapacityTest, PreparedMemoryFallsWithTheLimit) {
    grow(1000 * kib, 1000 * kib);
    capacity.prepare(600 * kib);
    capacity.prepare(200 * kib);
    EXPECT_EQ(capacity.above_prepared(), 400 * kib);
    EXPECT_EQ(totals.prepared_bytes, 600 * kib);
    capacity.limit(500 * kib);
    EXPECT_EQ(capacity.max(), 500 * kib);
    EXPECT_EQ(capacity.above_prepared(), 500 * kib);
    capacity.limit(0);
    EXPECT_EQ(totals.prepared_bytes, 500 * kib);
    capacity.forget_prepared();
    EXPECT_EQ(capacity.above_prepared(), 1000 * kib);
}

TEST_F(HeapCapacityTest, EndRefundsEverything) {
    {
        statistics::PoolTotals other_totals{};
        HeapCapacity other(growth, process, limited(), other_totals);
        other.grow(64 * kib, 64 * kib, path, [](std::size_t) { return true; });
        EXPECT_EQ(process.committed(), 64 * kib);
    }
    EXPECT_EQ(process.committed(), 0U);
}

}  // namespace
}  // namespace tensorpool::pages
