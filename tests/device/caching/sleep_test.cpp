#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using Simulated = test::Device;

class Sleep : public ::testing::Test {
protected:
    Sleep() : backend(with_capture(Slabs::expandable)), allocator(backend, 0) {}

    static SimulationOptions with_capture(Slabs slabs) {
        SimulationOptions options = test::unwatched(device_with(slabs, 256 * mib));
        options.graph_capture = true;
        return options;
    }
    void write(void* block, std::size_t bytes, unsigned char byte) {
        const std::vector<unsigned char> content(bytes, byte);
        EXPECT_EQ(backend.copy(0, CopyKind::host_to_device, block, content.data(), bytes),
                  DeviceStatus::ok);
    }
    bool holds(void* block, std::size_t bytes, unsigned char byte) {
        std::vector<unsigned char> content(bytes);
        EXPECT_EQ(backend.copy(0, CopyKind::device_to_host, content.data(), block, bytes),
                  DeviceStatus::ok);
        return content == std::vector<unsigned char>(bytes, byte);
    }
    std::string why_not(SleepContent content) {
        try {
            (void)allocator.sleep(content);
        } catch (const DeviceError& error) {
            return error.what();
        }
        return "";
    }

    Simulated backend;
    CachingAllocator allocator;
};

TEST_F(Sleep, GivesAllMemoryBackAndWakesWithTheSameContentAtTheSameAddresses) {
    void* const small = allocator.allocate(4096);
    void* const large = allocator.allocate(40 * mib, backend.stream());
    allocator.deallocate(allocator.allocate(30 * mib));
    write(small, 4096, 7);
    write(large, 40 * mib, 8);
    const std::uint64_t capacity = allocator.statistics().capacity_bytes;
    EXPECT_EQ(allocator.sleep(SleepContent::kept), capacity);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
    DeviceMemoryInfo info;
    EXPECT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
    EXPECT_EQ(info.free_bytes, info.total_bytes);
    EXPECT_EQ(allocator.sleep(SleepContent::kept), 0U) << "it sleeps already";
    allocator.wake();
    EXPECT_TRUE(holds(small, 4096, 7));
    EXPECT_TRUE(holds(large, 40 * mib, 8));
    allocator.wake();
    allocator.deallocate(small);
    allocator.deallocate(large);
    EXPECT_GT(allocator.trim(), 0U);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
}

TEST_F(Sleep, RequestsFailAndBlocksCanBeFreedUntilItWakes) {
    void* const block = allocator.allocate(40 * mib);
    void* const other = allocator.allocate(4096);
    (void)allocator.sleep(SleepContent::dropped);
    try {
        (void)allocator.allocate(40 * mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::asleep);
        EXPECT_NE(std::string(error.what()).find("call wake first"), std::string::npos)
            << error.what();
    }
    allocator.deallocate(block);
    EXPECT_EQ(allocator.try_allocate(40 * mib), nullptr) << "not even a block that was just freed";
    EXPECT_EQ(allocator.trim(), 0U);
    allocator.wake();
    EXPECT_EQ(allocator.allocate(40 * mib), block);
    write(block, 40 * mib, 1);
    write(other, 4096, 2);
}

TEST_F(Sleep, WaitsForWorkThatUsesTheMemory) {
    void* const block = allocator.allocate(4096);
    EXPECT_EQ(backend.fill_async(0, block, 5, 4096, nullptr), DeviceStatus::ok);
    (void)allocator.sleep(SleepContent::kept);
    allocator.wake();
    EXPECT_TRUE(holds(block, 4096, 5));
}

TEST_F(Sleep, IsRefusedWithTheReasonDuringACapture) {
    const StreamHandle stream = backend.stream();
    EXPECT_EQ(backend.begin_capture(0, stream), DeviceStatus::ok);
    EXPECT_NE(why_not(SleepContent::kept).find("a stream is captured"), std::string::npos);
    GraphHandle graph = nullptr;
    EXPECT_EQ(backend.end_capture(0, stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(why_not(SleepContent::kept), "");
}

TEST_F(Sleep, IsRefusedForBlocksInSlabsThatCannotGrow) {
    Simulated plain(with_capture(Slabs::plain));
    CachingAllocator of_plain(plain, 0);
    void* const block = of_plain.allocate(4096);
    try {
        (void)of_plain.sleep(SleepContent::kept);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::not_supported);
        EXPECT_NE(std::string(error.what()).find("4 KiB of slabs that cannot grow are in use"),
                  std::string::npos)
            << error.what();
    }
    of_plain.deallocate(block);
    EXPECT_GT(of_plain.sleep(SleepContent::kept), 0U) << "without blocks in use";
    of_plain.wake();
    EXPECT_NE(of_plain.allocate(4096), nullptr);
}

TEST_F(Sleep, GoesOnIfTheMemoryToWakeIsUnavailable) {
    void* const block = allocator.allocate(40 * mib);
    write(block, 40 * mib, 9);
    (void)allocator.sleep(SleepContent::kept);
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::create_memory, 5, 1}};
    backend.set_faults(faults);
    EXPECT_THROW(allocator.wake(), DeviceError);
    EXPECT_EQ(allocator.try_allocate(4096), nullptr) << "it still sleeps";
    allocator.wake();
    EXPECT_TRUE(holds(block, 40 * mib, 9));
}

TEST_F(Sleep, BlockFreedMeanwhileIsMergedAndOthersKeepTheirContent) {
    const StreamHandle stream = backend.stream();
    void* const freed = allocator.allocate(4096, stream);
    void* const kept = allocator.allocate(4096);
    write(kept, 4096, 3);
    (void)allocator.sleep(SleepContent::kept);
    allocator.deallocate(freed);
    allocator.end_stream(stream);  // merges the free block with the rest of its granule
    allocator.wake();
    EXPECT_TRUE(holds(kept, 4096, 3));
}

TEST_F(Sleep, ScalarsKeepTheirValuesAndNewOnesAreRefused) {
    void* const scalar = allocator.allocate_scalar(8);
    write(scalar, 8, 4);
    (void)allocator.sleep(SleepContent::kept);
    EXPECT_THROW((void)allocator.allocate_scalar(8), DeviceAllocationError);
    EXPECT_THROW(allocator.reserve_for_capture(mib), DeviceAllocationError);
    allocator.wake();
    EXPECT_TRUE(holds(scalar, 8, 4));
    allocator.deallocate(scalar);
}

TEST_F(Sleep, RequestsOfOtherThreadsAreServedOrRefusedMeanwhile) {
    void* const block = allocator.allocate(4096);
    write(block, 4096, 6);
    std::atomic<bool> done = false;
    std::vector<std::thread> threads;
    for (std::size_t number = 1; number <= 2; ++number) {
        threads.emplace_back([&, number] {
            for (std::size_t i = 0; !done; ++i) {
                void* const own = allocator.try_allocate((1 + i % 3) * number * mib);
                if (own != nullptr) allocator.deallocate(own);
                if (i % 16 == 0) (void)allocator.trim();
            }
        });
    }
    for (int i = 0; i < 30; ++i) {
        (void)allocator.sleep(SleepContent::kept);
        allocator.wake();
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(holds(block, 4096, 6));
    allocator.deallocate(block);
    (void)allocator.trim();
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool
