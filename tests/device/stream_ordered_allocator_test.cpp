#include <tensorpool/device/stream_ordered_allocator.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtime.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using Simulated = test::Device;

constexpr std::size_t mib = std::size_t{1} << 20;

SimulationOptions device_options() {
    SimulationOptions options;
    options.memory_bytes = 64 * mib;
    options.schedule = Schedule::lazy;
    return options;
}

class StreamOrderedAllocatorTest : public ::testing::Test {
protected:
    ~StreamOrderedAllocatorTest() override { test::expect_none(backend); }

    Simulated backend{device_options()};
    StreamOrderedAllocator allocator{backend, 0};
    const StreamHandle stream = backend.stream();
    const StreamHandle other = backend.stream();
};

TEST_F(StreamOrderedAllocatorTest, PassesEachCallOnToTheDevice) {
    void* const block = allocator.allocate(1000, stream);
    EXPECT_EQ(allocator.usable_size(block), 1000u);
    EXPECT_TRUE(allocator.is_used_on(block, stream));
    EXPECT_FALSE(allocator.is_used_on(block, nullptr));
    backend.writes(stream, block, "write", 1000);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.usable_size(block), 0u);
    allocator.deallocate(nullptr);
    EXPECT_EQ(allocator.allocate(0, stream), nullptr);
    EXPECT_EQ(backend.calls()[SimulatedCall::set_release_threshold], 1u);
    EXPECT_EQ(backend.calls()[SimulatedCall::allocate_async], 1u);
    EXPECT_EQ(backend.calls()[SimulatedCall::deallocate_async], 1u);
    EXPECT_EQ(backend.calls().waits(), 0u);
}

TEST_F(StreamOrderedAllocatorTest, CountsBlocksAndBytes) {
    void* const one = allocator.allocate(1000, stream);
    void* const two = allocator.allocate(3000);
    DeviceStatistics now = allocator.statistics();
    EXPECT_EQ(now.kind, DeviceStatistics::Kind::caching);
    EXPECT_EQ(now.in_use_bytes, 4000u);
    EXPECT_EQ(now.capacity_bytes, 4000u);
    EXPECT_EQ(now.allocations, 2u);
    allocator.deallocate(one);
    allocator.deallocate(two);
    now = allocator.statistics();
    EXPECT_EQ(now.in_use_bytes, 0u);
    EXPECT_EQ(now.capacity_bytes, 0u);
    EXPECT_EQ(now.peak_in_use_bytes, 4000u);
    EXPECT_EQ(now.deallocations, 2u);
}

TEST_F(StreamOrderedAllocatorTest, FreeWaitsForOtherStreamsOnTheDevice) {
    void* const block = allocator.allocate(mib, stream);
    backend.writes(stream, block, "write", mib);
    backend.orders(stream, other);
    backend.reads(other, block, "read", mib);
    allocator.record_use(block, other);
    allocator.record_use(block, other);
    EXPECT_TRUE(allocator.is_used_on(block, other));
    allocator.deallocate(block);
    EXPECT_EQ(backend.calls().waits(), 0u);
    EXPECT_EQ(allocator.statistics().cross_stream_uses, 1u);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 0u);
    backend.synchronize(stream);
    EXPECT_EQ(backend.query_stream(0, other), DeviceStatus::ok) << "the free came after its work";
}

TEST_F(StreamOrderedAllocatorTest, BlockOfACapturedStreamIsFreedAfterTheCapture) {
    void* const block = allocator.allocate(mib, stream);
    allocator.record_use(block, other);
    ASSERT_EQ(backend.begin_capture(0, other), DeviceStatus::ok);
    allocator.deallocate(block);
    EXPECT_EQ(backend.calls()[SimulatedCall::deallocate_async], 0u);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0u);
    EXPECT_EQ(allocator.statistics().deferred_bytes, mib);
    GraphHandle graph = nullptr;
    ASSERT_EQ(backend.end_capture(0, other, &graph), DeviceStatus::ok);
    (void)allocator.trim();
    EXPECT_EQ(backend.calls()[SimulatedCall::deallocate_async], 1u);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 0u);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0u);
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
}

TEST_F(StreamOrderedAllocatorTest, RequestForACapturedStreamIsRejected) {
    ASSERT_EQ(backend.begin_capture(0, stream), DeviceStatus::ok);
    try {
        (void)allocator.allocate(1000, stream);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::in_capture);
        EXPECT_STREQ(
            error.what(),
            "tensorpool: ordered on simulated:0: allocate: 1000 B: the stream is captured; "
            "expected one that is not");
    }
    EXPECT_EQ(allocator.try_allocate(1000, stream), nullptr);
    GraphHandle graph = nullptr;
    EXPECT_EQ(backend.end_capture(0, stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
}

TEST_F(StreamOrderedAllocatorTest, LackOfMemoryIsExplained) {
    void* const block = allocator.allocate(40 * mib, stream);
    try {
        (void)allocator.allocate(30 * mib, stream);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.asked(), 30 * mib);
        EXPECT_EQ(error.failure().in_use, 40 * mib);
        EXPECT_EQ(error.failure().device_free, 24 * mib);
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::own_use);
    }
    EXPECT_EQ(allocator.statistics().failures, 1u);
    allocator.deallocate(block);
}

TEST_F(StreamOrderedAllocatorTest, BlocksOfAnEndedStreamBelongToTheDefaultStream) {
    void* const own = allocator.allocate(1000, stream);
    void* const used = allocator.allocate(1000);
    allocator.record_use(used, stream);
    backend.writes(stream, own, "write", 1000);
    allocator.end_stream(stream);
    ASSERT_EQ(backend.destroy_stream(0, stream), DeviceStatus::ok);
    EXPECT_TRUE(allocator.is_used_on(own, nullptr));
    EXPECT_FALSE(allocator.is_used_on(used, stream));
    allocator.deallocate(own);
    allocator.deallocate(used);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 0u);
}

TEST_F(StreamOrderedAllocatorTest, HandlesEndOnAnyThread) {
    PooledAllocation handle(allocator, 1000, stream);
    EXPECT_EQ(handle.host_pointer(), nullptr);
    std::thread([moved = std::move(handle)] {}).join();
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0u);
}

TEST_F(StreamOrderedAllocatorTest, DestructorFreesBlocksInUse) {
    {
        StreamOrderedAllocator short_lived(backend, 0);
        (void)short_lived.allocate(mib, stream);
    }
    backend.synchronize(nullptr);
    DeviceMemoryInfo info;
    ASSERT_EQ(backend.memory_info(0, info), DeviceStatus::ok);
    EXPECT_EQ(info.free_bytes, info.total_bytes);
}

TEST_F(StreamOrderedAllocatorTest, InvalidArgumentsAreRejected) {
    int mine = 0;
    EXPECT_THROW(allocator.record_use(&mine, stream), DeviceError);
    EXPECT_THROW(StreamOrderedAllocator(backend, 1), std::invalid_argument);
    SimulationOptions options = device_options();
    options.stream_ordered_allocation = false;
    Simulated without(options);
    try {
        const StreamOrderedAllocator none(without, 0);
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: stream-ordered allocator 'ordered': simulated:0 has no "
                     "stream-ordered allocation; expected a device with it");
    }
}

TEST_F(StreamOrderedAllocatorTest, InvalidFreesEndTheProcess) {
    int mine = 0;
    EXPECT_DEATH(allocator.deallocate(&mine),
                 "ordered on simulated:0: deallocate: no block in use begins at 0x");
    void* const block = allocator.allocate(1000, stream);
    allocator.deallocate(block);
    EXPECT_DEATH(allocator.deallocate(block), "no block in use begins at 0x");
}

TEST(StreamOrderedRuntime, TakesDeviceMemoryFromTheDriver) {
    const auto backend = std::make_shared<SimulatedBackend>(device_options());
    RuntimeOptions options;
    options.stream_ordered.emplace();
    Runtime runtime(backend, {DeviceType::simulated, 0}, options);
    EXPECT_EQ(runtime.caching_allocator(), nullptr);
    EXPECT_EQ(runtime.allocator().statistics().kind, DeviceStatistics::Kind::caching);
    DeviceAllocation memory;
    {
        const DeviceStream stream(runtime);
        memory = runtime.allocate(1000, stream);
        memory.fill(1);
        EXPECT_EQ(memory.stream(), stream.handle());
    }
    EXPECT_EQ(memory.stream(), nullptr);
    memory.fill(2);
    memory.reset();
    (void)runtime.trim();
    EXPECT_EQ(backend->calls()[SimulatedCall::allocate_async], 1u);
    EXPECT_EQ(backend->calls()[SimulatedCall::deallocate_async], 1u);
    EXPECT_EQ(backend->calls()[SimulatedCall::trim_stream_ordered], 1u);
    EXPECT_EQ(backend->hazard_count(), 0u) << backend->hazard_report();
}

}  // namespace
}  // namespace tensorpool
