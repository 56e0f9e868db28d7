#include <gtest/gtest.h>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

SimulationOptions large_device() {
    SimulationOptions options = unwatched(device_with(Slabs::plain, 16384 * mib));
    options.fill_patterns = false;
    return options;
}

TEST(XLargeSlabs, ServeSeveralLargeRequests) {
    Simulated backend(large_device());
    CachingAllocator allocator(backend, 0);
    for (int i = 0; i < 10; ++i) (void)allocator.allocate(12 * mib);
    EXPECT_EQ(backend.calls()[SimulatedCall::allocate], 1U);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 128 * mib);
}

TEST(XLargeSlabs, AreLargerWithUnifiedMemory) {
    SimulationOptions options = large_device();
    options.unified_memory = true;
    Simulated backend(options);
    CachingAllocator allocator(backend, 0);
    (void)allocator.allocate(12 * mib);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 1024 * mib);
}

TEST(XLargeSlabs, AreNotMadeForSmallerRequestsOrDevicesOrIfMemoryIsKeptNearThePeak) {
    Simulated large(large_device());
    Simulated small(unwatched(device_with(Slabs::plain, 1024 * mib)));
    CachingOptions near_peak;
    near_peak.keep_near_peak = true;
    CachingAllocator of_large(large, 0);
    CachingAllocator of_small(small, 0);
    CachingAllocator of_near_peak(large, 0, near_peak);
    (void)of_large.allocate(9 * mib);
    (void)of_small.allocate(12 * mib);
    (void)of_near_peak.allocate(12 * mib);
    for (const CachingAllocator* const one : {&of_large, &of_small, &of_near_peak}) {
        EXPECT_EQ(one->statistics().capacity_bytes, 32 * mib);
    }
}

TEST(XLargeSlabs, GiveWayToExactOnesUnderPressure) {
    Simulated backend(large_device());
    CachingOptions options;
    options.hard_limit = 30.0 / 16384;
    CachingAllocator allocator(backend, 0, options);
    EXPECT_NE(allocator.try_allocate(12 * mib), nullptr);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 12 * mib);
    EXPECT_NE(allocator.try_allocate(18 * mib), nullptr);
    EXPECT_EQ(allocator.try_allocate(mib), nullptr);
}

}  // namespace
}  // namespace tensorpool
