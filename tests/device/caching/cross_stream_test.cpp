#include <tensorpool/device/caching_allocator.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/wait_until.hpp"

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::DeviceCalls;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

/// Uses a device that watches blocks, and checks at the end of each test that it found no hazard.
class CrossStream : public ::testing::Test {
protected:
    CrossStream() : backend(device_with(Slabs::plain)), allocator(backend, 0) {}
    ~CrossStream() override { EXPECT_EQ(backend.hazard_report(), ""); }

    Simulated backend;
    CachingAllocator allocator;
};

TEST_F(CrossStream, BlockUsedByAnotherStreamIsFreeAfterThatStreamsWork) {
    const StreamHandle user = backend.stream();
    void* const block = allocator.allocate(4096);
    backend.writes(nullptr, block, "write");
    backend.orders(nullptr, user);
    backend.reads(user, block, "read");
    allocator.record_use(block, user);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 4096U);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
    void* const other = allocator.allocate(4096);
    EXPECT_NE(other, block);
    backend.synchronize(user);
    EXPECT_EQ(allocator.allocate(4096), block);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 0U);
    allocator.deallocate(block);
    allocator.deallocate(other);
}

TEST_F(CrossStream, EachUseRecordsOneEventEvenIfReportedTwice) {
    const StreamHandle user = backend.stream();
    for (int i = 0; i < 10; ++i) {
        void* const block = allocator.allocate(4096);
        allocator.record_use(block, user);
        allocator.record_use(block, user);
        allocator.deallocate(block);
        backend.synchronize(user);
    }
    const DeviceCalls calls(backend);
    EXPECT_EQ(calls.events, 10U);
    EXPECT_EQ(allocator.statistics().events, 10U);
    EXPECT_EQ(allocator.statistics().cross_stream_uses, 20U);
}

TEST_F(CrossStream, UseByTheOwnStreamRecordsNoEvent) {
    void* const block = allocator.allocate(4096);
    allocator.record_use(block, nullptr);
    allocator.deallocate(block);
    EXPECT_EQ(DeviceCalls(backend).events, 0U);
    EXPECT_EQ(allocator.allocate(4096), block);
    allocator.deallocate(block);
}

TEST_F(CrossStream, SlowStreamHoldsBackOnlyItsOwnBlocks) {
    const StreamHandle slow = backend.stream();
    const StreamHandle quick = backend.stream();
    void* const held = allocator.allocate(4096);
    void* const passing = allocator.allocate(4096);
    backend.calls_back(
        slow, [] {}, "slow");
    backend.calls_back(
        quick, [] {}, "quick");
    allocator.record_use(held, slow);
    allocator.record_use(passing, quick);
    allocator.deallocate(held);
    allocator.deallocate(passing);
    backend.synchronize(quick);
    EXPECT_EQ(allocator.allocate(4096), passing);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 1U);
    allocator.deallocate(passing);
}

TEST_F(CrossStream, BlockWaitsForAllStreamsThatUseIt) {
    const StreamHandle first = backend.stream();
    const StreamHandle second = backend.stream();
    void* const block = allocator.allocate(4096);
    backend.calls_back(first, [] {});
    backend.calls_back(second, [] {});
    allocator.record_use(block, first);
    allocator.record_use(block, second);
    allocator.deallocate(block);
    backend.synchronize(first);
    void* const other = allocator.allocate(4096);
    EXPECT_NE(other, block);
    backend.synchronize(second);
    EXPECT_EQ(allocator.allocate(4096), block);
    allocator.deallocate(block);
    allocator.deallocate(other);
}

TEST_F(CrossStream, StreamIsQueriedIfNoEventCanBeRecorded) {
    const StreamHandle user = backend.stream();
    void* const block = allocator.allocate(4096);
    backend.calls_back(user, [] {});
    allocator.record_use(block, user);
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::record_event, 1, 1}};
    backend.set_faults(faults);
    allocator.deallocate(block);
    void* const other = allocator.allocate(4096);
    EXPECT_NE(other, block);
    backend.synchronize(user);
    EXPECT_EQ(allocator.allocate(4096), block);
    allocator.deallocate(block);
    allocator.deallocate(other);
}

TEST_F(CrossStream, UseOfAnInvalidAddressIsRejected) {
    void* const block = allocator.allocate(4096);
    const StreamHandle user = backend.stream();
    EXPECT_THROW(allocator.record_use(static_cast<char*>(block) + 1, user), DeviceError);
    allocator.deallocate(block);
    try {
        allocator.record_use(block, user);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_NE(std::string(error.what()).find("is not a block in use"), std::string::npos);
    }
}

TEST_F(CrossStream, EndedStreamLeavesItsBlocksToTheDefaultStream) {
    const StreamHandle stream = backend.stream();
    void* const free = allocator.allocate(4096, stream);
    void* const in_use = allocator.allocate(4096, stream);
    backend.writes(stream, free, "write");
    backend.writes(stream, in_use, "write");
    allocator.deallocate(free);
    allocator.end_stream(stream);
    EXPECT_EQ(backend.destroy_stream(0, stream), DeviceStatus::ok);
    EXPECT_EQ(allocator.statistics().streams, 1U);
    EXPECT_EQ(allocator.allocate(4096), free);
    allocator.deallocate(in_use);
    EXPECT_EQ(allocator.allocate(4096), in_use);
    const DeviceStatistics now = allocator.statistics();
    EXPECT_EQ(now.in_use_bytes, 8192U);
    EXPECT_EQ(now.allocations, 4U);
    EXPECT_EQ(now.capacity_bytes, 2 * mib);
    allocator.deallocate(free);
    allocator.deallocate(in_use);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
}

TEST_F(CrossStream, BlocksDoNotWaitForAnEndedStream) {
    const StreamHandle user = backend.stream();
    void* const freed_before = allocator.allocate(4096);
    void* const freed_after = allocator.allocate(4096);
    allocator.record_use(freed_before, user);
    allocator.record_use(freed_after, user);
    backend.set_faults({.slow_event_queries = UINT64_MAX});
    allocator.deallocate(freed_before);
    allocator.end_stream(user);
    EXPECT_EQ(backend.destroy_stream(0, user), DeviceStatus::ok);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 0U);
    allocator.deallocate(freed_after);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 0U);
    EXPECT_EQ(DeviceCalls(backend).events, 1U);
}

TEST_F(CrossStream, DefaultStreamCannotEnd) {
    EXPECT_THROW(allocator.end_stream(nullptr), DeviceError);
}

TEST_F(CrossStream, ScalarsAreEightBytesApartInOneBlock) {
    std::vector<void*> scalars;
    for (int i = 0; i < 64; ++i) scalars.push_back(allocator.allocate_scalar(4));
    for (int i = 1; i < 64; ++i) {
        EXPECT_EQ(scalars[i], static_cast<char*>(scalars[0]) + 8 * i);
    }
    const DeviceStatistics now = allocator.statistics();
    EXPECT_EQ(now.in_use_bytes, 512U);
    EXPECT_EQ(now.requested_in_use_bytes, 256U);
    EXPECT_EQ(now.capacity_bytes, 2 * mib);
    EXPECT_EQ(now.growths, 1U);
    EXPECT_EQ(allocator.usable_size(scalars[5]), 8U);
    allocator.deallocate(scalars[5]);
    EXPECT_EQ(allocator.usable_size(scalars[5]), 0U);
    EXPECT_EQ(allocator.allocate_scalar(8), scalars[5]);
    EXPECT_THROW(allocator.allocate_scalar(9), std::invalid_argument);
    EXPECT_DEATH(allocator.deallocate(static_cast<char*>(scalars[0]) + 4), "holds scalars");
    for (void* scalar : scalars) allocator.deallocate(scalar);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
    EXPECT_EQ(allocator.statistics().requested_in_use_bytes, 0U);
    EXPECT_EQ(allocator.trim(), 2 * mib);
}

TEST_F(CrossStream, ScalarMayBeFreedWhileAnotherStreamReadsIt) {
    const StreamHandle user = backend.stream();
    void* const scalar = allocator.allocate_scalar(8);
    backend.writes(nullptr, scalar, "write", 8);
    backend.orders(nullptr, user);
    backend.reads(user, scalar, "read", 8);
    allocator.record_use(scalar, user);
    allocator.deallocate(scalar);
    EXPECT_EQ(backend.hazard_report(), "");
}

TEST_F(CrossStream, UseOfAFreeScalarIsRejected) {
    void* const scalar = allocator.allocate_scalar(8);
    const StreamHandle user = backend.stream();
    EXPECT_THROW(allocator.record_use(static_cast<char*>(scalar) + 8, user), DeviceError);
    EXPECT_THROW(allocator.record_use(static_cast<char*>(scalar) + 1, user), DeviceError);
    allocator.deallocate(scalar);
    EXPECT_THROW(allocator.record_use(scalar, user), DeviceError);
}

TEST_F(CrossStream, ScalarUsedByAnotherStreamIsReusedAfterThatStreamsWork) {
    const StreamHandle user = backend.stream();
    void* const scalar = allocator.allocate_scalar(8);
    backend.calls_back(user, [] {});
    allocator.record_use(scalar, user);
    allocator.deallocate(scalar);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 512U);
    void* const other = allocator.allocate_scalar(8);
    EXPECT_NE(other, scalar);
    allocator.deallocate(other);
    backend.synchronize(user);
    EXPECT_EQ(allocator.trim(), 2 * mib);
}

TEST(CrossStreamThreads, NoBlockIsLostWhenFreedWhileItsStreamEnds) {
    Simulated unseen(unwatched(device_with(Slabs::plain)));
    CachingAllocator open(unseen, 0);
    const StreamHandle stream = unseen.stream();
    for (int round = 0; round < 300; ++round) {
        std::vector<void*> blocks;
        for (int i = 0; i < 100; ++i) blocks.push_back(open.allocate(512, stream));
        std::atomic<int> freed = 0;
        std::thread freeing([&] {
            for (void* const block : blocks) {
                open.deallocate(block);
                ++freed;
            }
        });
        testing::wait_until("20 blocks are freed", [&] { return freed >= 20; });
        open.end_stream(stream);
        freeing.join();
        const DeviceStatistics now = open.statistics();
        ASSERT_EQ(now.in_use_bytes, 0U);
        ASSERT_LE(now.parked_bytes, now.capacity_bytes);
        ASSERT_EQ(open.trim(), now.capacity_bytes) << "in round " << round;
    }
}

}  // namespace
}  // namespace tensorpool
