// Limits of a caching allocator that change while it is used.

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

class Limits : public ::testing::TestWithParam<Slabs> {
protected:
    /// Returns the statistics that other processes read.
    DeviceStatistics in_segment() const {
        for (const DeviceStatistics& device : take_snapshot().devices) {
            if (device.id == allocator.statistics().id) return device;
        }
        ADD_FAILURE() << "the allocator is not in the snapshot";
        return {};
    }
    std::uint64_t capacity() const { return allocator.statistics().capacity_bytes; }

    Simulated backend{unwatched(device_with(GetParam(), 256 * mib))};
    CachingAllocator allocator{backend, 0};
};

TEST_P(Limits, RaisedHardLimitAllowsGrowth) {
    allocator.set_hard_limit(0.25);
    EXPECT_EQ(allocator.try_allocate(100 * mib), nullptr);
    allocator.set_hard_limit(0.5);
    void* const block = allocator.allocate(100 * mib);
    EXPECT_EQ(allocator.try_allocate(100 * mib), nullptr);
    allocator.set_hard_limit(0);
    void* const other = allocator.allocate(100 * mib);
    for (void* const each : {block, other}) allocator.deallocate(each);
}

TEST_P(Limits, LoweredHardLimitGivesFreeMemoryBackAndRefusesGrowth) {
    void* const used = allocator.allocate(64 * mib);
    void* const freed = allocator.allocate(100 * mib);
    allocator.deallocate(freed);
    allocator.set_hard_limit(0.125);
    EXPECT_EQ(capacity(), 64 * mib) << "the part in use";
    try {
        (void)allocator.allocate(4 * mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::limit);
        EXPECT_EQ(error.failure().limit, 32 * mib);
    }
    allocator.deallocate(used);
    void* const block = allocator.allocate(32 * mib, backend.stream());
    EXPECT_EQ(capacity(), 32 * mib);
    allocator.deallocate(block);
}

TEST_P(Limits, LoweredHardLimitKeepsMemoryBelowIt) {
    for (const std::size_t bytes : {64 * mib, 100 * mib}) {
        allocator.deallocate(allocator.allocate(bytes));
    }
    const std::uint64_t before = capacity();
    allocator.set_hard_limit(1);
    EXPECT_EQ(capacity(), before);
}

TEST_P(Limits, LoweredHardLimitKeepsMemoryThatWorkUses) {
    const StreamHandle stream = backend.stream();
    void* const block = allocator.allocate(64 * mib, stream);
    EXPECT_EQ(backend.fill_async(0, block, 1, 64 * mib, stream), DeviceStatus::ok);
    allocator.deallocate(block);
    allocator.set_hard_limit(0.125);
    EXPECT_EQ(capacity(), 64 * mib);
    EXPECT_EQ(backend.calls().waits(), 0U);
    backend.synchronize(stream);
    void* const other = allocator.allocate(20 * mib);
    EXPECT_LE(capacity(), 64 * mib);
    allocator.deallocate(other);
}

TEST_P(Limits, AreShownByStatisticsAndSegment) {
    allocator.set_hard_limit(0.5);
    allocator.set_soft_limit(0.25);
    for (const DeviceStatistics& shown : {allocator.statistics(), in_segment()}) {
        EXPECT_EQ(shown.limit_bytes, 128 * mib);
        EXPECT_EQ(shown.soft_limit_bytes, 64 * mib);
    }
    allocator.set_hard_limit(0);
    allocator.set_soft_limit(0);
    for (const DeviceStatistics& shown : {allocator.statistics(), in_segment()}) {
        EXPECT_EQ(shown.limit_bytes, 0U);
        EXPECT_EQ(shown.soft_limit_bytes, 0U);
    }
}

TEST_P(Limits, SoftLimitAppliesFromTheNextGrowthOn) {
    void* const used = allocator.allocate(100 * mib);
    allocator.deallocate(allocator.allocate(100 * mib));
    void* const first = allocator.allocate(4096);
    EXPECT_EQ(allocator.statistics().give_backs, 0U);
    allocator.set_soft_limit(0.5);
    EXPECT_EQ(allocator.statistics().give_backs, 0U);
    void* const second = allocator.allocate(4096, backend.stream());
    EXPECT_LE(capacity(), 128 * mib);
    for (void* const each : {used, first, second}) allocator.deallocate(each);
}

TEST_P(Limits, ImpossiblePartsAreRejectedAndChangeNothing) {
    allocator.set_hard_limit(0.5);
    for (const double part : {-0.5, 2.5, std::numeric_limits<double>::quiet_NaN()}) {
        EXPECT_THROW(allocator.set_hard_limit(part), std::invalid_argument);
        EXPECT_THROW(allocator.set_soft_limit(part), std::invalid_argument);
    }
    EXPECT_EQ(allocator.statistics().limit_bytes, 128 * mib);
    EXPECT_EQ(allocator.statistics().soft_limit_bytes, 0U);
}

TEST_P(Limits, MayChangeWhileOtherThreadsAllocate) {
    std::vector<std::thread> threads;
    std::atomic<int> running = 3;
    for (std::size_t number = 1; number <= 3; ++number) {
        threads.emplace_back([&, number] {
            const StreamHandle stream = backend.stream();
            for (std::size_t step = 0; step < 200; ++step) {
                allocator.deallocate(
                    allocator.try_allocate((1 + step * number % 40) * mib, stream));
            }
            --running;
        });
    }
    for (int step = 0; running != 0; ++step) allocator.set_hard_limit(step % 2 == 0 ? 0.125 : 0.5);
    for (std::thread& thread : threads) thread.join();
    allocator.set_hard_limit(0.125);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
    EXPECT_LE(capacity(), 32 * mib);
}

INSTANTIATE_TEST_SUITE_P(Slabs, Limits, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

}  // namespace
}  // namespace tensorpool
