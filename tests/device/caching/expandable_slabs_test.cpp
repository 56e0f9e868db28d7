#include <gtest/gtest.h>

#include <string>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

/// Ignores the content of memory, which the simulation would copy as memory moves.
struct Addresses : Simulated {
    using Simulated::Simulated;
    DeviceStatus map_memories(int, void*, std::size_t,
                              std::span<const MemoryHandle>) noexcept override {
        ++runs;
        return DeviceStatus::ok;
    }
    DeviceStatus unmap_memory(int, void*, std::size_t) noexcept override {
        return DeviceStatus::ok;
    }
    std::uint64_t runs = 0;
};

TEST(LargeGranules, TenGibibytesTakeAtMost520CreatesAndOneRun) {
    SimulationOptions options = unwatched(device_with(Slabs::expandable, 16384 * mib));
    options.fill_patterns = false;
    Addresses backend(options);
    CachingAllocator allocator(backend, 0);
    void* const block = allocator.allocate(10240 * mib);
    EXPECT_LE(backend.calls()[SimulatedCall::create_memory], 520U);
    EXPECT_EQ(backend.runs, 1U);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), std::size_t{10240} * mib);
}

TEST(LargeGranules, SmallBlocksGrowBySmallGranules) {
    SimulationOptions options = unwatched(device_with(Slabs::expandable, 16384 * mib));
    options.fill_patterns = false;
    Addresses backend(options);
    CachingAllocator allocator(backend, 0);
    allocator.deallocate(allocator.allocate(4096));
    EXPECT_EQ(allocator.statistics().capacity_bytes, 2 * mib);
    allocator.deallocate(allocator.allocate(3 * mib));
    EXPECT_EQ(allocator.statistics().capacity_bytes, 34 * mib);
}

class PartialUnmap : public ::testing::Test {
protected:
    PartialUnmap() : backend(device_with(Slabs::expandable, 256 * mib)), allocator(backend, 0) {
        block = allocator.allocate(40 * mib);
        allocator.deallocate(block);
    }
    ~PartialUnmap() override { EXPECT_EQ(backend.hazard_report(), ""); }

    void fail(std::vector<FailingCall> failing) {
        SimulationFaults faults;
        faults.failing = std::move(failing);
        backend.set_faults(faults);
    }

    Simulated backend;
    CachingAllocator allocator;
    void* block = nullptr;
};

TEST_F(PartialUnmap, IsUndoneSoThatTheWholeBlockStaysUsable) {
    fail({{SimulatedCall::unmap_memory, 7, 1}});
    EXPECT_EQ(allocator.trim(), 0U);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 40 * mib);
    ASSERT_EQ(allocator.allocate(40 * mib), block);
    EXPECT_EQ(backend.fill_async(0, block, 1, 40 * mib, nullptr), DeviceStatus::ok);
    backend.synchronize(nullptr);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), 40 * mib);
}

TEST_F(PartialUnmap, BlockThatCannotBeMappedAgainIsNotUsedAndGivenBackLater) {
    fail({{SimulatedCall::unmap_memory, 7, 1}, {SimulatedCall::map_memory, 1, 1}});
    EXPECT_EQ(allocator.trim(), 0U);
    void* const other = allocator.allocate(40 * mib);
    EXPECT_NE(other, block);
    EXPECT_EQ(backend.fill_async(0, other, 1, 40 * mib, nullptr), DeviceStatus::ok);
    backend.synchronize(nullptr);
    allocator.deallocate(other);
    EXPECT_EQ(allocator.trim(), 40 * mib);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool
