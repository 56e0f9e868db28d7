#include <tensorpool/device/host_allocator.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device/simulated_backend.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

/// Counts its allocations and frees, and may have a limit.
class CountingSource final : public HostMemorySource {
public:
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept override {
        if (given_bytes + bytes > limit) return nullptr;
        given_bytes += bytes;
        ++given;
        return behind_->allocate(bytes, alignment);
    }
    void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override {
        given_bytes -= bytes;
        --given;
        behind_->deallocate(memory, bytes, alignment);
    }

    std::atomic<std::size_t> given{0};
    std::atomic<std::size_t> given_bytes{0};
    std::size_t limit = SIZE_MAX;

private:
    std::shared_ptr<HostMemorySource> behind_ = system_memory_source();
};

class HostAllocatorTest : public testing::Test {
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
    std::shared_ptr<CountingSource> source_ = std::make_shared<CountingSource>();
    HostAllocator allocator_{backend_, {DeviceType::cpu, 0}, source_};
};

TEST(SystemMemorySource, RefusesWhatNoMemoryHolds) {
    const std::shared_ptr<HostMemorySource> source = system_memory_source();
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 20, std::size_t{1} << 63}) {
        EXPECT_EQ(source->allocate(bytes, 64), nullptr) << bytes;
    }
}

TEST_F(HostAllocatorTest, BlocksAreAlignedAndOfTheRequestedSize) {
    for (const std::size_t bytes : {1u, 100u, 4096u, 1u << 20}) {
        void* const block = allocator_.allocate(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 256, 0u);
        EXPECT_EQ(allocator_.usable_size(block), bytes);
        EXPECT_EQ(source_->given_bytes, bytes);
        allocator_.deallocate(block);
    }
    EXPECT_EQ(source_->given, 0u);
}

TEST_F(HostAllocatorTest, ZeroBytesGiveNullptr) {
    EXPECT_EQ(allocator_.allocate(0), nullptr);
    allocator_.deallocate(nullptr);
    EXPECT_EQ(allocator_.usable_size(nullptr), 0u);
    EXPECT_EQ(allocator_.statistics().allocations, 0u);
}

TEST_F(HostAllocatorTest, BlockIsFreedAtOnceIfItsStreamIsIdle) {
    const StreamHandle stream = make_stream();
    void* const block = allocator_.allocate(1000, stream);
    backend_.reset_calls();
    allocator_.deallocate(block);
    EXPECT_EQ(source_->given, 0u);
    EXPECT_EQ(backend_.calls()[SimulatedCall::record_event], 0u);
    EXPECT_EQ(allocator_.statistics().events, 0u);
}

TEST_F(HostAllocatorTest, BlockIsFreedAfterItsBusyStreamsWork) {
    const StreamHandle stream = make_stream();
    void* const block = allocator_.allocate(1000, stream);
    keep_busy(stream);
    allocator_.deallocate(block);
    EXPECT_EQ(source_->given, 1u);
    EXPECT_EQ(allocator_.statistics().deferred_bytes, 1000u);
    EXPECT_EQ(allocator_.statistics().in_use_bytes, 0u);
    EXPECT_EQ(allocator_.trim(), 0u);

    EXPECT_EQ(backend_.synchronize_stream(0, stream), DeviceStatus::ok);
    EXPECT_EQ(allocator_.trim(), 1000u);
    EXPECT_EQ(source_->given, 0u);
    EXPECT_EQ(allocator_.statistics().deferred_bytes, 0u);
    EXPECT_EQ(allocator_.statistics().events, 1u);
}

TEST_F(HostAllocatorTest, BlockWaitsForEachStreamThatUsedIt) {
    const StreamHandle own = make_stream();
    const StreamHandle other = make_stream();
    void* const block = allocator_.allocate(1000, own);
    allocator_.record_use(block, other);
    allocator_.record_use(block, other);
    allocator_.record_use(block, own);
    keep_busy(own);
    keep_busy(other);
    allocator_.deallocate(block);
    EXPECT_EQ(backend_.synchronize_stream(0, own), DeviceStatus::ok);
    EXPECT_EQ(allocator_.trim(), 0u);
    EXPECT_EQ(backend_.synchronize_stream(0, other), DeviceStatus::ok);
    EXPECT_EQ(allocator_.trim(), 1000u);
    EXPECT_EQ(allocator_.statistics().cross_stream_uses, 1u);
    EXPECT_EQ(allocator_.statistics().events, 2u);
}

TEST_F(HostAllocatorTest, SlowStreamHoldsBackOnlyItsOwnBlocks) {
    const StreamHandle slow = make_stream();
    const StreamHandle quick = make_stream();
    void* const first = allocator_.allocate(100, slow);
    void* const second = allocator_.allocate(200, quick);
    keep_busy(slow);
    keep_busy(quick);
    allocator_.deallocate(first);
    allocator_.deallocate(second);
    EXPECT_EQ(backend_.synchronize_stream(0, quick), DeviceStatus::ok);
    void* const next = allocator_.allocate(1);
    EXPECT_EQ(source_->given_bytes, 101u);
    allocator_.deallocate(next);
}

TEST_F(HostAllocatorTest, WaitsForHeldBackBlocksBeforeARequestFails) {
    source_->limit = 1000;
    const StreamHandle stream = make_stream();
    void* const block = allocator_.allocate(1000, stream);
    keep_busy(stream);
    allocator_.deallocate(block);
    void* const next = allocator_.allocate(600);
    EXPECT_NE(next, nullptr);
    EXPECT_EQ(allocator_.statistics().pressures, 1u);
    EXPECT_EQ(allocator_.statistics().synchronizations, 1u);
    allocator_.deallocate(next);
}

TEST_F(HostAllocatorTest, LostDeviceHoldsNothingBack) {
    const StreamHandle stream = make_stream();
    void* const block = allocator_.allocate(1000, stream);
    keep_busy(stream);
    allocator_.deallocate(block);
    EXPECT_EQ(allocator_.trim(), 0u);
    backend_.set_faults({.lost_from = 1});
    EXPECT_EQ(allocator_.trim(), 1000u);
    EXPECT_EQ(source_->given, 0u);
}

TEST_F(HostAllocatorTest, StreamDestroyedTooEarlyHoldsBlocksUntilMemoryIsShort) {
    source_->limit = 1000;
    const StreamHandle stream = make_stream();
    void* const block = allocator_.allocate(1000, stream);
    EXPECT_EQ(backend_.destroy_stream(0, stream), DeviceStatus::ok);
    allocator_.deallocate(block);  // the destroyed stream cannot be queried
    EXPECT_EQ(allocator_.trim(), 0u);
    void* const next = allocator_.allocate(600);
    EXPECT_NE(next, nullptr);
    allocator_.deallocate(next);
    EXPECT_EQ(source_->given, 0u);
}

TEST_F(HostAllocatorTest, FailedRequestReportsUsageAndChangesNothing) {
    source_->limit = 1000;
    void* const block = allocator_.allocate(400);
    try {
        (void)allocator_.allocate(601);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().asked, 601u);
        EXPECT_EQ(error.failure().in_use, 400u);
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::limit);
        EXPECT_EQ(error.failure().device, (Device{DeviceType::cpu, 0}));
    }
    EXPECT_EQ(allocator_.try_allocate(601), nullptr);
    EXPECT_EQ(allocator_.statistics().failures, 2u);
    EXPECT_EQ(allocator_.statistics().in_use_bytes, 400u);
    allocator_.deallocate(block);
}

TEST_F(HostAllocatorTest, BlocksOfAnEndedStreamGoToTheDefaultStream) {
    const StreamHandle stream = make_stream();
    void* const held = allocator_.allocate(100, stream);
    void* const kept = allocator_.allocate(200, stream);
    void* const used = allocator_.allocate(300);
    allocator_.record_use(used, stream);
    keep_busy(stream);
    allocator_.deallocate(held);
    allocator_.end_stream(stream);
    EXPECT_EQ(source_->given_bytes, 500u);
    EXPECT_EQ(backend_.destroy_stream(0, stream), DeviceStatus::ok);
    backend_.reset_calls();
    allocator_.deallocate(kept);
    allocator_.deallocate(used);
    EXPECT_EQ(source_->given, 0u);
    EXPECT_EQ(backend_.hazard_count(), 0u) << backend_.hazard_report();
}

TEST_F(HostAllocatorTest, LateEventsOfASynchronizedStreamHoldNothingBack) {
    SimulationFaults faults;
    faults.slow_event_queries = 1000;
    backend_.set_faults(faults);
    const StreamHandle stream = make_stream();
    void* block = allocator_.allocate(300, stream);
    keep_busy(stream);
    allocator_.deallocate(block);
    source_->limit = 400;
    block = allocator_.allocate(200, stream);
    keep_busy(stream);
    allocator_.deallocate(block);
    allocator_.end_stream(stream);
    EXPECT_EQ(source_->given, 0u);
    EXPECT_EQ(allocator_.statistics().deferred_bytes, 0u);
}

TEST_F(HostAllocatorTest, BlockFreedDuringCaptureWaitsAndAddsNothingToTheGraph) {
    const StreamHandle stream = make_stream();
    void* const block = allocator_.allocate(1000, stream);
    ASSERT_EQ(backend_.begin_capture(0, stream), DeviceStatus::ok);
    allocator_.deallocate(block);
    EXPECT_EQ(source_->given, 1u);
    EXPECT_EQ(allocator_.trim(), 0u);
    EXPECT_EQ(allocator_.statistics().events, 0u);
    GraphHandle graph = nullptr;
    ASSERT_EQ(backend_.end_capture(0, stream, &graph), DeviceStatus::ok);
    keep_busy(stream);
    EXPECT_EQ(allocator_.trim(), 0u);
    EXPECT_EQ(backend_.synchronize_stream(0, stream), DeviceStatus::ok);
    EXPECT_EQ(allocator_.trim(), 1000u);
    EXPECT_EQ(backend_.destroy_graph(0, graph), DeviceStatus::ok);
    EXPECT_EQ(backend_.hazard_count(), 0u) << backend_.hazard_report();
}

TEST_F(HostAllocatorTest, DestructorFreesAllMemory) {
    const StreamHandle stream = make_stream();
    {
        HostAllocator allocator(backend_, {DeviceType::cpu, 0}, source_);
        (void)allocator.allocate(100);
        void* const held = allocator.allocate(200, stream);
        keep_busy(stream);
        allocator.deallocate(held);
        EXPECT_EQ(source_->given, 2u);
    }
    EXPECT_EQ(source_->given, 0u);
}

TEST_F(HostAllocatorTest, UseOfAnInvalidAddressIsRejected) {
    int nothing = 0;
    try {
        allocator_.record_use(&nothing, nullptr);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::invalid_argument);
        EXPECT_NE(std::string(error.what()).find("host allocator of cpu:0"), std::string::npos);
    }
}

TEST_F(HostAllocatorTest, FreeOfAnInvalidAddressTerminates) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    void* const block = allocator_.allocate(100);
    EXPECT_DEATH(allocator_.deallocate(static_cast<std::byte*>(block) + 1),
                 "no block in use of the host allocator of cpu:0 begins at 0x");
    allocator_.deallocate(block);
    EXPECT_DEATH(allocator_.deallocate(block), "no block in use");
}

TEST_F(HostAllocatorTest, ThreadsFreeEachOthersBlocksWhileStreamsEnd) {
    constexpr int rounds = 200;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                const StreamHandle stream = make_stream();
                void* const first = allocator_.allocate(100, stream);
                void* const second = allocator_.allocate(200);
                allocator_.record_use(second, stream);
                keep_busy(stream);
                std::thread other([&] {
                    allocator_.deallocate(first);
                    allocator_.deallocate(second);
                });
                allocator_.end_stream(stream);
                EXPECT_EQ(backend_.destroy_stream(0, stream), DeviceStatus::ok);
                other.join();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(backend_.synchronize_device(0), DeviceStatus::ok);
    allocator_.trim();
    EXPECT_EQ(source_->given, 0u);
    const DeviceStatistics statistics = allocator_.statistics();
    EXPECT_EQ(statistics.in_use_bytes, 0u);
    EXPECT_EQ(statistics.deferred_blocks, 0u);
    EXPECT_EQ(statistics.capacity_bytes, 0u);
    EXPECT_EQ(statistics.allocations, 4u * rounds * 2);
    EXPECT_EQ(statistics.deallocations, statistics.allocations);
}

}  // namespace
}  // namespace tensorpool
