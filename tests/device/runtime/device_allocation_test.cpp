#include <tensorpool/device/device_allocation.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/runtime/made_bytes.hpp"
#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

class DeviceAllocationTest : public testing::Test {
protected:
    ~DeviceAllocationTest() override {
        EXPECT_EQ(simulated_->hazard_count(), 0u) << simulated_->hazard_report();
    }
    std::uint64_t in_use() const { return runtime_.allocator().statistics().in_use_bytes; }

    PutInBackend simulated_{lazy_devices(2)};
    Runtime& runtime_ = get_runtime({DeviceType::simulated, 0});
};

TEST_F(DeviceAllocationTest, ReportsItsProperties) {
    const DeviceStream stream(runtime_);
    const DeviceAllocation memory(runtime_, 1000, stream);
    EXPECT_NE(memory.data(), nullptr);
    EXPECT_EQ(memory.size(), 1000u);
    EXPECT_EQ(memory.device(), (Device{DeviceType::simulated, 0}));
    EXPECT_EQ(memory.kind(), MemoryKind::device);
    EXPECT_EQ(memory.stream(), stream.handle());
    EXPECT_TRUE(memory);
}

TEST_F(DeviceAllocationTest, DefaultsToTheCurrentDevice) {
    get_runtime({DeviceType::simulated, 1}).activate();
    EXPECT_EQ(DeviceAllocation(100).device().index, 1);
    EXPECT_EQ(DeviceAllocation(100).device().index, 1);
}

TEST_F(DeviceAllocationTest, EmptyHandleHasNoMemory) {
    DeviceAllocation memory;
    EXPECT_FALSE(memory);
    EXPECT_EQ(memory.size(), 0u);
    EXPECT_EQ(memory.host_pointer(), nullptr);
    memory.set(0, {});
    memory.fill(1);
    memory.copy_from(DeviceAllocation());
    memory.record_use(nullptr);
    std::byte one = {};
    EXPECT_THROW(memory.set(0, {&one, 1}), std::out_of_range);
    const DeviceAllocation empty(runtime_, 0);
    EXPECT_EQ(empty.data(), nullptr);
    EXPECT_EQ(empty.device(), (Device{DeviceType::simulated, 0}));
}

TEST_F(DeviceAllocationTest, MayBeFreedByAThreadOfAnotherDevice) {
    DeviceAllocation memory(runtime_, 1000);
    DeviceAllocation pinned = runtime_.allocate_pinned(1000);
    std::thread([&] {
        get_runtime({DeviceType::simulated, 1}).activate();
        memory.reset();
        pinned.reset();
    }).join();
    EXPECT_EQ(in_use(), 0u);
    EXPECT_EQ(runtime_.pinned_allocator().statistics().in_use_bytes, 0u);
}

TEST_F(DeviceAllocationTest, GetReturnsWhatWasSet) {
    const std::vector<std::byte> bytes = made_bytes(100);
    const DeviceStream stream(runtime_);
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
        DeviceAllocation memory(runtime_, 300, stream, kind);
        memory.fill(9);
        memory.set(100, bytes);
        std::vector<std::byte> expected(300, std::byte{9});
        std::copy(bytes.begin(), bytes.end(), expected.begin() + 100);
        EXPECT_EQ(content_of(memory), expected) << to_string(kind);
        std::vector<std::byte> part(50);
        memory.get(120, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + 20));
    }
}

TEST_F(DeviceAllocationTest, RejectsRangesOutsideOfIt) {
    DeviceAllocation memory(runtime_, 100);
    std::vector<std::byte> bytes(60);
    memory.set(40, bytes);
    try {
        memory.set(41, bytes);
        ADD_FAILURE();
    } catch (const std::out_of_range& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: set: 60 bytes at offset 41 exceed the 100 bytes on simulated:0");
    }
    EXPECT_THROW(memory.get(SIZE_MAX, bytes), std::out_of_range);
    EXPECT_THROW(memory.get(101, {}), std::out_of_range);
}

// A graph would access the caller's bytes long after the call.
TEST_F(DeviceAllocationTest, CallersBytesAreNotCaptured) {
    Runtime device(device_to_capture(), {DeviceType::simulated, 0});
    const DeviceStream stream(device);
    DeviceAllocation memory(device, 100, stream);
    DeviceAllocation of_another(runtime_, 100);
    memory.fill(1);
    of_another.fill(2);
    stream.synchronize();
    std::vector<std::byte> bytes(100, std::byte{3});
    ASSERT_EQ(device.backend().begin_capture(0, stream), DeviceStatus::ok);
    EXPECT_THROW(memory.get(0, bytes), DeviceError);
    EXPECT_THROW(memory.set(0, bytes), DeviceError);
    EXPECT_THROW(memory.copy_from(of_another), DeviceError);
    EXPECT_THROW(of_another.copy_from(memory), DeviceError);
    GraphHandle graph = nullptr;
    ASSERT_EQ(device.backend().end_capture(0, stream, &graph), DeviceStatus::ok);
    ASSERT_EQ(device.backend().launch_graph(0, graph, stream), DeviceStatus::ok);
    stream.synchronize();
    EXPECT_EQ(bytes, std::vector<std::byte>(100, std::byte{3}));
    EXPECT_EQ(content_of(memory), std::vector<std::byte>(100, std::byte{1}));
    EXPECT_EQ(content_of(of_another), std::vector<std::byte>(100, std::byte{2}));
    EXPECT_EQ(device.backend().destroy_graph(0, graph), DeviceStatus::ok);
}

// Nothing may be copied later, when the caller's bytes may no longer exist.
TEST_F(DeviceAllocationTest, RejectedCopyDuringCaptureCopiesNothing) {
    Runtime device(device_to_capture(), {DeviceType::simulated, 0});
    const DeviceStream captured(device);
    DeviceAllocation memory(device, 100);
    memory.fill(1);
    device.synchronize();
    ASSERT_EQ(device.backend().begin_capture(0, captured), DeviceStatus::ok);
    EXPECT_THROW(memory.set(0, std::vector<std::byte>(100)), DeviceError);
    GraphHandle graph = nullptr;
    ASSERT_EQ(device.backend().end_capture(0, captured, &graph), DeviceStatus::ok);
    EXPECT_EQ(content_of(memory), std::vector<std::byte>(100, std::byte{1}));
    EXPECT_EQ(device.backend().destroy_graph(0, graph), DeviceStatus::ok);
}

// The fill of host memory is a function that runs once, but a graph may be launched often.
TEST_F(DeviceAllocationTest, HostMemoryCannotBeFilledInACapture) {
    for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::host}) {
        const DeviceStream stream(runtime_);
        DeviceAllocation memory(runtime_, 100, stream, kind);
        ASSERT_EQ(runtime_.backend().begin_capture(0, stream), DeviceStatus::ok);
        EXPECT_THROW(memory.fill(1), DeviceError) << to_string(kind);
        GraphHandle graph = nullptr;
        ASSERT_EQ(runtime_.backend().end_capture(0, stream, &graph), DeviceStatus::ok);
        EXPECT_EQ(runtime_.backend().destroy_graph(0, graph), DeviceStatus::ok);
    }
}

TEST_F(DeviceAllocationTest, UsesTheDefaultStreamAfterItsOwnEnded) {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
        auto own = std::make_unique<DeviceStream>(runtime_);
        DeviceAllocation memory(runtime_, 300, *own, kind);
        DeviceAllocation other(runtime_, 300, *own, kind);
        memory.set(0, made_bytes(300));
        EXPECT_EQ(memory.stream(), own->handle());
        own.reset();
        EXPECT_EQ(memory.stream(), nullptr);
        EXPECT_EQ(content_of(memory), made_bytes(300)) << to_string(kind);
        memory.fill(5);
        other.copy_from(memory);
        memory.reset();
        DeviceAllocation again(runtime_, 300, nullptr, kind);
        again.set(0, made_bytes(300));
        EXPECT_EQ(content_of(other), std::vector<std::byte>(300, std::byte{5})) << to_string(kind);
    }
}

TEST_F(DeviceAllocationTest, PinnedMemoryWaitsForTheDefaultStream) {
    DeviceAllocation pinned = runtime_.allocate_pinned(1000);
    DeviceAllocation memory(runtime_, 1000);
    pinned.set(0, made_bytes(1000));
    runtime_.copy_host_to_device(memory.data(), pinned.data(), 1000, runtime_.default_stream());
    pinned.reset();
    const DeviceAllocation again = runtime_.allocate_pinned(1000);
    simulated_->host_write(again.data(), again.size());  // immediately, without any stream
    EXPECT_EQ(content_of(memory), made_bytes(1000));
}

TEST_F(DeviceAllocationTest, HasAHostPointerIfTheHostCanAccessIt) {
    EXPECT_EQ(DeviceAllocation(runtime_, 10).host_pointer(), nullptr);
    const DeviceAllocation pinned = runtime_.allocate_pinned(10);
    EXPECT_EQ(pinned.host_pointer(), pinned.data());
    const DeviceAllocation of_cpu(get_runtime({DeviceType::cpu, 0}), 10);
    EXPECT_EQ(of_cpu.host_pointer(), of_cpu.data());

    SimulationOptions options;
    options.unified_memory = true;
    Runtime unified(std::make_shared<SimulatedBackend>(options), {DeviceType::simulated, 0});
    DeviceAllocation memory(unified, 10);
    memory.fill(3);
    unified.synchronize_device();
    ASSERT_NE(memory.host_pointer(), nullptr);
    EXPECT_EQ(*static_cast<std::byte*>(memory.host_pointer()), std::byte{3});
}

TEST_F(DeviceAllocationTest, MayBeUsedOnAnotherRecordedStream) {
    const DeviceStream own(runtime_);
    const DeviceStream other(runtime_);
    {
        DeviceAllocation memory(runtime_, 1000, own);
        memory.fill(1);
        DeviceEvent filled(runtime_);
        filled.record(own);
        other.wait(filled);
        runtime_.fill(memory.data(), 2, 1000, other);
        memory.record_use(other);
    }
    DeviceAllocation next(runtime_, 1000, own);
    next.fill(3);
    runtime_.synchronize_device();
}

TEST_F(DeviceAllocationTest, ShapeIsCheckedAndMovesWithTheBlock) {
    DeviceAllocation memory(runtime_, 96);
    EXPECT_EQ(memory.shape(), MemoryShape{});
    memory.set_shape({{2, 3, 4}, 4});
    EXPECT_THROW(memory.set_shape({{25}, 4}), std::invalid_argument);
    EXPECT_EQ(memory.shape(), (MemoryShape{{2, 3, 4}, 4}));
    const DeviceAllocation moved(std::move(memory));
    EXPECT_EQ(moved.shape(), (MemoryShape{{2, 3, 4}, 4}));
}

TEST_F(DeviceAllocationTest, AllocationMovesAndIsFreedOnce) {
    DeviceAllocation first(runtime_, 1000);
    void* const data = first.data();
    DeviceAllocation second(std::move(first));
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(second.data(), data);
    DeviceAllocation third(runtime_, 500);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.size(), 1000u);
    third.reset();
    EXPECT_EQ(in_use(), 0u);
    EXPECT_EQ(third.size(), 0u);
}

TEST_F(DeviceAllocationTest, FailedRequestThrowsAndChangesNothing) {
    EXPECT_THROW(DeviceAllocation(runtime_, 2 * device_bytes), std::bad_alloc);
    EXPECT_EQ(in_use(), 0u);
}

}  // namespace
}  // namespace tensorpool
