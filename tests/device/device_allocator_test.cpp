// Handles that own blocks of device allocators.

#include <tensorpool/device/device_allocator.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/host_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/device/simulated_backend.hpp>
#include <tensorpool/pooled_array.hpp>

#include "device/device_types.hpp"
#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

static_assert(StreamSource<DeviceAllocator> && StreamSource<DeviceAllocator, StreamHandle>);
static_assert(StreamSource<CachingAllocator, std::nullptr_t>);
static_assert(!MemorySource<DeviceAllocator> && !ReleasingSource<DeviceAllocator>);

class DeviceHandleTest : public ::testing::Test {
protected:
    StreamHandle make_stream() {
        StreamHandle stream = nullptr;
        EXPECT_EQ(backend_.create_stream(0, &stream), DeviceStatus::ok);
        return stream;
    }
    /// Submits work that the stream does only when a caller waits for it.
    void keep_busy(StreamHandle stream) {
        EXPECT_EQ(backend_.launch_host_function(
                      0, stream, [](void*) {}, nullptr),
                  DeviceStatus::ok);
    }

    SimulatedBackend backend_{lazy_devices()};
    CachingAllocator caching_{backend_, 0};
    PinnedAllocator pinned_{backend_, 0};
    HostAllocator host_{backend_, {DeviceType::simulated, 0}, system_memory_source()};
};

TEST_F(DeviceHandleTest, EndFreesTheBlockOnAnyThread) {
    const StreamHandle stream = make_stream();
    for (DeviceAllocator* allocator :
         {static_cast<DeviceAllocator*>(&caching_), static_cast<DeviceAllocator*>(&pinned_),
          static_cast<DeviceAllocator*>(&host_)}) {
        PooledAllocation one(*allocator, 1000);
        PooledAllocation other(*allocator, 5000, stream);
        EXPECT_TRUE(allocator->is_used_on(other.get(), stream));
        EXPECT_EQ(other.size(), 5000U);
        EXPECT_GE(allocator->usable_size(one.get()), 1000U);
        one.swap(other);
        std::thread([moved = std::move(one)] {}).join();
        other.reset();
        EXPECT_EQ(allocator->statistics().in_use_bytes, 0U);
        EXPECT_FALSE(PooledAllocation(*allocator, 0, stream));
    }
}

TEST_F(DeviceHandleTest, EndIsDeferredUntilTheStreamsHavePassed) {
    const StreamHandle own = make_stream();
    const StreamHandle other = make_stream();
    PooledAllocation handle(host_, 1000, own);
    host_.record_use(handle.get(), other);
    keep_busy(own);
    keep_busy(other);
    handle.reset();
    EXPECT_EQ(host_.statistics().in_use_bytes, 0U);
    EXPECT_EQ(host_.statistics().deferred_bytes, 1000U);
    EXPECT_EQ(backend_.synchronize_stream(0, own), DeviceStatus::ok);
    EXPECT_EQ(host_.trim(), 0U) << "the other stream still uses the block";
    EXPECT_EQ(backend_.synchronize_stream(0, other), DeviceStatus::ok);
    EXPECT_EQ(host_.trim(), 1000U);
}

TEST_F(DeviceHandleTest, ReleaseLeavesTheBlockToTheCaller) {
    PooledAllocation handle(caching_, 1000);
    void* const block = handle.release();
    EXPECT_GT(caching_.usable_size(block), 0U);
    caching_.deallocate(block);
    EXPECT_EQ(caching_.statistics().in_use_bytes, 0U);
}

TEST_F(DeviceHandleTest, MemoryOfTheDeviceAloneIsRefusedOnTheHost) {
    PooledAllocation handle(caching_, 1000);
    EXPECT_NE(handle.get(), nullptr);
    EXPECT_EQ(handle.host_pointer(), nullptr);
    EXPECT_EQ(handle.device(), (SourceDevice{12, 0}));
    try {
        (void)handle.as<float>();
        FAIL() << "expected an exception";
    } catch (const std::invalid_argument& error) {
        EXPECT_EQ(std::string(error.what()),
                  "tensorpool: as: the host cannot access the block, which belongs to a source of "
                  "kind 'device allocator' (DLPack device type 12); expected memory of the host");
    }
    handle.reset();
    EXPECT_TRUE(handle.as<float>().empty());
    EXPECT_THROW(PooledArray<int>(caching_, 10), std::invalid_argument);
    EXPECT_EQ(caching_.statistics().in_use_bytes, 0U) << "the array left nothing behind";
}

TEST_F(DeviceHandleTest, MemoryOfTheHostHoldsElements) {
    const StreamHandle stream = make_stream();
    PooledArray<std::string> names(pinned_, 3, stream);
    names[2] = "long enough to lie outside of the object itself";
    EXPECT_EQ(names.allocation().device(), SourceDevice{});
    PooledArray<int> numbers(host_, 100);
    EXPECT_EQ(numbers[99], 0);
    EXPECT_EQ(numbers.allocation().device(), SourceDevice{});
    PooledAllocation bytes(host_, 100);
    EXPECT_EQ(bytes.as<std::byte>().data(), bytes.get());
}

TEST_F(DeviceHandleTest, UnifiedMemoryHoldsElements) {
    SimulationOptions options = lazy_devices();
    options.unified_memory = true;
    SimulatedBackend unified(options);
    CachingAllocator allocator(unified, 0);
    const PooledArray<int> numbers(allocator, 100);
    EXPECT_EQ(numbers[99], 0);
    EXPECT_EQ(numbers.allocation().device(), (SourceDevice{12, 0})) << "that of the allocator";
}

TEST_F(DeviceHandleTest, MemoryOfTheCpuHoldsElements) {
    HostBackend cpu;
    CachingAllocator allocator(cpu, 0);
    const PooledArray<int> numbers(allocator, 100);
    EXPECT_EQ(numbers[99], 0);
    EXPECT_EQ(numbers.allocation().device(), SourceDevice{});
}

TEST_F(DeviceHandleTest, ThrowsWhatTheAllocatorThrows) {
    EXPECT_THROW(PooledAllocation(caching_, 2 * device_bytes), DeviceAllocationError);
    EXPECT_THROW(PooledArray<double>(caching_, SIZE_MAX / 2), std::bad_array_new_length);
    EXPECT_EQ(caching_.statistics().in_use_bytes, 0U);
}

TEST(DlpackDevice, NamesTheTypesOfDlpack) {
    EXPECT_EQ(device::dlpack_device({DeviceType::cpu, 0}), (SourceDevice{1, 0}));
    EXPECT_EQ(device::dlpack_device({DeviceType::cuda, 3}), (SourceDevice{2, 3}));
    EXPECT_EQ(device::dlpack_device({DeviceType::simulated, 1}), (SourceDevice{12, 1}));
}

}  // namespace
}  // namespace tensorpool
