#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/timeline.hpp>

#include "support/wait_until.hpp"

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::DeviceCalls;
using test::kib;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

/// The kinds of an allocator's entries after entry `number`, without growth and give-back.
std::vector<std::string> entries_since(std::uint64_t number, const std::string& name) {
    std::vector<std::string> kinds;
    for (const TimelineEntry& entry : timeline_since(number).entries) {
        const bool other = entry.name != name || entry.kind == EntryKind::growth ||
                           entry.kind == EntryKind::give_back;
        if (!other) kinds.emplace_back(to_string(entry.kind));
    }
    return kinds;
}
std::uint64_t now() {
    return timeline_since(0).last;
}

class Pressure : public ::testing::TestWithParam<Slabs> {
protected:
    explicit Pressure(std::size_t memory = 256 * mib)
        : backend(unwatched(device_with(GetParam(), memory))) {
        options.name = "pressed";
    }

    DeviceAllocationFailure failure_of(CachingAllocator& allocator, std::size_t bytes) {
        try {
            (void)allocator.allocate(bytes);
        } catch (const DeviceAllocationError& error) {
            text = error.what();
            return error.failure();
        }
        ADD_FAILURE() << bytes << " B were allocated";
        return {};
    }

    Simulated backend;
    CachingOptions options;
    std::string text;  // of the last error
};

TEST_P(Pressure, RunsAllStepsInOrderBeforeFailing) {
    CachingAllocator allocator(backend, 0, options);
    void* const block = allocator.allocate(200 * mib);
    const std::uint64_t before = now();
    EXPECT_EQ(allocator.try_allocate(100 * mib), nullptr);
    const std::vector<std::string> steps = {"completed", "coalesced", "aged",   "callbacks",
                                            "uncached",  "waited",    "failure"};
    EXPECT_EQ(entries_since(before, "pressed"), steps);
    EXPECT_EQ(allocator.statistics().failures, 1U);
    EXPECT_EQ(allocator.usable_size(block), 200 * mib);
    allocator.deallocate(block);
    EXPECT_NE(allocator.try_allocate(100 * mib), nullptr);
}

TEST_P(Pressure, RequestLargerThanTheDeviceMakesNoDeviceCall) {
    CachingAllocator allocator(backend, 0, options);
    backend.reset_calls();
    const DeviceAllocationFailure failure = failure_of(allocator, std::size_t{1} << 45);
    EXPECT_EQ(failure.cause, DeviceAllocationFailure::Cause::request);
    const DeviceCalls calls(backend);
    EXPECT_EQ(calls.memory + calls.maps + calls.waits, 0U);
}

TEST_P(Pressure, MemoryParkedByAnotherStreamIsReleasedForARequest) {
    CachingAllocator allocator(backend, 0, options);
    const StreamHandle stream = backend.stream();
    allocator.deallocate(allocator.allocate(200 * mib, stream));
    (void)DeviceCalls(backend);
    EXPECT_NE(allocator.try_allocate(200 * mib), nullptr);
    EXPECT_EQ(DeviceCalls(backend).waits, 0U);
    EXPECT_EQ(allocator.statistics().pressures, 1U);
}

TEST_P(Pressure, MemoryThatWorkUsesIsWaitedForLast) {
    CachingAllocator allocator(backend, 0, options);
    const StreamHandle stream = backend.stream();
    void* const block = allocator.allocate(200 * mib, stream);
    backend.writes(stream, block, "kernel");
    allocator.deallocate(block);
    const std::uint64_t before = now();
    EXPECT_NE(allocator.try_allocate(200 * mib), nullptr);
    const std::vector<std::string> steps = entries_since(before, "pressed");
    ASSERT_GE(steps.size(), 2U);
    EXPECT_EQ(steps[steps.size() - 2], "waited");
    EXPECT_EQ(steps.back(), "pressure");
    EXPECT_EQ(allocator.statistics().synchronizations, 1U);
}

TEST_P(Pressure, BlockHeldBackByAStreamIsWaitedFor) {
    CachingAllocator allocator(backend, 0, options);
    const StreamHandle user = backend.stream();
    void* const block = allocator.allocate(200 * mib);
    backend.reads(user, block, "read");
    allocator.record_use(block, user);
    allocator.deallocate(block);
    EXPECT_NE(allocator.try_allocate(200 * mib), nullptr);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 0U);
}

TEST_P(Pressure, CallbackThatFreesMemoryLetsTheRequestSucceed) {
    CachingAllocator allocator(backend, 0, options);
    void* cache = allocator.allocate(200 * mib);
    allocator.add_callback("cache", [&](const AllocatorEvent& event) {
        if (event.kind != AllocatorEvent::Kind::allocation_failed) return;
        allocator.deallocate(cache);
        cache = nullptr;
    });
    void* const block = allocator.allocate(200 * mib);
    EXPECT_EQ(cache, nullptr);
    EXPECT_EQ(allocator.statistics().pressures, 1U);
    EXPECT_TRUE(allocator.remove_callback("cache"));
    allocator.deallocate(block);
}

TEST_P(Pressure, HardLimitHoldsAndIsReportedAsCause) {
    options.hard_limit = 0.25;
    CachingAllocator allocator(backend, 0, options);
    EXPECT_EQ(allocator.statistics().limit_bytes, 64 * mib);
    void* const block = allocator.allocate(40 * mib);
    const DeviceAllocationFailure failure = failure_of(allocator, 40 * mib);
    EXPECT_EQ(failure.cause, DeviceAllocationFailure::Cause::limit);
    EXPECT_EQ(failure.limit, 64 * mib);
    EXPECT_LE(allocator.statistics().peak_capacity_bytes, 64 * mib);
    EXPECT_NE(text.find("cause: the limit of the allocator"), std::string::npos) << text;
    allocator.deallocate(block);
    EXPECT_NE(allocator.try_allocate(60 * mib), nullptr);
}

TEST_P(Pressure, OtherProcessesAreReportedAsCauseIfTheyHoldMost) {
    backend.set_other_process_bytes(0, 200 * mib);
    CachingAllocator allocator(backend, 0, options);
    const DeviceAllocationFailure failure = failure_of(allocator, 100 * mib);
    EXPECT_EQ(failure.cause, DeviceAllocationFailure::Cause::other_processes);
    EXPECT_EQ(failure.other_processes, 200 * mib);
    EXPECT_EQ(failure.missing, 44 * mib);
    EXPECT_NE(text.find("used by other processes 200 MiB"), std::string::npos) << text;
}

TEST_P(Pressure, OwnUseIsReportedAsCause) {
    CachingAllocator allocator(backend, 0, options);
    (void)allocator.allocate(200 * mib);
    const DeviceAllocationFailure failure = failure_of(allocator, 100 * mib);
    EXPECT_EQ(failure.cause, DeviceAllocationFailure::Cause::own_use);
    EXPECT_EQ(failure.in_use, 200 * mib);
    EXPECT_EQ(failure.asked, 100 * mib);
    EXPECT_NE(text.find("(100 MiB) requested"), std::string::npos) << text;
}

TEST_P(Pressure, LostDeviceIsNotReportedAsLackOfMemory) {
    CachingAllocator allocator(backend, 0, options);
    SimulationFaults faults;
    faults.lost_from = 1;
    backend.set_faults(faults);
    try {
        (void)allocator.allocate(mib);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::device_lost);
    }
}

TEST_P(Pressure, LateFreeSizeIsSettledBeforeItIsUsed) {
    SimulationOptions late = unwatched(device_with(GetParam(), 256 * mib));
    late.late_free_size = true;
    Simulated slow(late);
    CachingAllocator allocator(slow, 0, options);
    allocator.deallocate(allocator.allocate(200 * mib, slow.stream()));
    EXPECT_NE(allocator.try_allocate(200 * mib), nullptr);
    EXPECT_EQ(allocator.statistics().failures, 0U);
}

TEST_P(Pressure, OldestBlocksAreReleasedAtTheSoftLimit) {
    options.soft_limit = 0.5;
    CachingAllocator allocator(backend, 0, options);
    const StreamHandle first = backend.stream();
    const StreamHandle second = backend.stream();
    void* const old = allocator.allocate(40 * mib, first);
    void* const held = allocator.allocate(2 * mib, first);
    void* const young = allocator.allocate(40 * mib, second);
    allocator.deallocate(old);
    // The first stream searches its sets and cannot use the old block.
    for (int i = 0; i < 10; ++i) (void)allocator.allocate(mib + 512 * kib, first);
    allocator.deallocate(young);
    (void)allocator.allocate(64 * mib);
    EXPECT_GT(allocator.statistics().give_backs, 0U);
    EXPECT_LE(allocator.statistics().capacity_bytes, 160 * mib);
    (void)DeviceCalls(backend);
    allocator.deallocate(allocator.allocate(40 * mib, second));
    EXPECT_EQ(DeviceCalls(backend).memory, 0U) << "the young block is still cached";
    allocator.deallocate(held);
}

TEST_P(Pressure, FailedDeviceCallChangesNothing) {
    for (const SimulatedCall call : {SimulatedCall::allocate, SimulatedCall::create_memory,
                                     SimulatedCall::map_memory, SimulatedCall::reserve_addresses}) {
        for (const std::uint64_t from : {1U, 2U, 5U}) {
            Simulated faulty(unwatched(device_with(GetParam(), 256 * mib)));
            CachingAllocator allocator(faulty, 0, options);
            SimulationFaults faults;
            faults.failing = {{call, from, 1'000'000}};
            faulty.set_faults(faults);
            std::vector<void*> blocks;
            while (blocks.size() < 8) {
                void* const block = allocator.try_allocate(20 * mib);
                if (block == nullptr) break;
                blocks.push_back(block);
            }
            for (void* block : blocks) allocator.deallocate(block);
            faulty.set_faults({});
            (void)allocator.trim();
            DeviceMemoryInfo info;
            (void)faulty.memory_info(0, info);
            EXPECT_EQ(info.free_bytes, info.total_bytes) << to_string(call) << ' ' << from;
            EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
            EXPECT_NE(allocator.try_allocate(200 * mib), nullptr) << to_string(call) << ' ' << from;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Slabs, Pressure, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

TEST_P(Pressure, MemoryThatTheDeviceDoesNotTakeBackStaysUsable) {
    CachingAllocator allocator(backend, 0, options);
    void* const block = allocator.allocate(40 * mib);
    allocator.deallocate(block);
    const std::size_t capacity = allocator.statistics().capacity_bytes;
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::deallocate, 1, 1}, {SimulatedCall::unmap_memory, 1, 1}};
    backend.set_faults(faults);
    EXPECT_EQ(allocator.trim(), 0U);
    EXPECT_EQ(allocator.statistics().capacity_bytes, capacity);
    EXPECT_EQ(allocator.allocate(40 * mib), block);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), capacity);
}

/// Takes memory back only when the test lets it.
struct SlowToTake : Simulated {
    using Simulated::Simulated;
    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override {
        calls.count_down();
        may_go_on.wait();
        return Simulated::deallocate(device, memory, bytes, kind);
    }
    std::latch calls{1};
    std::latch may_go_on{1};
};

TEST(PressureThreads, RequestWaitsForMemoryThatAnotherThreadReleases) {
    SlowToTake backend(unwatched(device_with(Slabs::plain, 64 * mib)));
    CachingOptions options;
    options.name = "returning";
    CachingAllocator allocator(backend, 0, options);
    allocator.deallocate(allocator.allocate(40 * mib));
    const std::uint64_t before = now();
    std::thread trimming([&] { EXPECT_EQ(allocator.trim(), 40 * mib); });
    backend.calls.wait();
    void* block = nullptr;
    std::thread asking([&] { block = allocator.try_allocate(40 * mib); });
    const auto is_late = [&] {
        const std::vector<std::string> steps = entries_since(before, "returning");
        return std::find(steps.begin(), steps.end(), "uncached") != steps.end();
    };
    testing::wait_until("the other request finds nothing cached", is_late);
    backend.may_go_on.count_down();
    trimming.join();
    asking.join();
    EXPECT_NE(block, nullptr);
    allocator.deallocate(block);
}

TEST(Fragmentation, IsReportedIfEnoughIsFreeButNotContiguous) {
    Simulated backend(unwatched(device_with(Slabs::plain, 64 * mib)));
    CachingAllocator allocator(backend, 0);
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(16 * mib));
    allocator.deallocate(blocks[0]);
    allocator.deallocate(blocks[2]);
    try {
        (void)allocator.allocate(30 * mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::fragmentation);
        EXPECT_EQ(error.failure().largest_free, 16 * mib);
        EXPECT_EQ(error.failure().free_blocks, 2U);
    }
}

TEST(Fragmentation, DoesNotOccurWithExpandableSlabs) {
    Simulated backend(unwatched(device_with(Slabs::expandable, 64 * mib)));
    CachingAllocator allocator(backend, 0);
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(16 * mib));
    allocator.deallocate(blocks[0]);
    allocator.deallocate(blocks[2]);
    EXPECT_NE(allocator.try_allocate(30 * mib), nullptr);
    EXPECT_LE(allocator.statistics().capacity_bytes, 64 * mib);
}

TEST(HeldBack, StreamsAreReportedWithTheirBytes) {
    SimulationOptions options = unwatched(device_with(Slabs::plain, 64 * mib));
    Simulated backend(options);
    CachingAllocator allocator(backend, 0);
    const StreamHandle user = backend.stream();
    void* const block = allocator.allocate(40 * mib);
    backend.reads(user, block, "read");
    allocator.record_use(block, user);
    allocator.deallocate(block);
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::synchronize_device, 1, 1}};
    backend.set_faults(faults);
    try {
        (void)allocator.allocate(40 * mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        const DeviceAllocationFailure& failure = error.failure();
        EXPECT_EQ(failure.cause, DeviceAllocationFailure::Cause::held_back);
        ASSERT_EQ(failure.holder_count, 1U);
        EXPECT_EQ(failure.holders[0].stream, user);
        EXPECT_EQ(failure.holders[0].bytes, 40 * mib);
        EXPECT_NE(std::string(error.what()).find("freed but held back 40 MiB by stream"),
                  std::string::npos)
            << error.what();
    }
}

TEST(HardLimit, HoldsIfFreeMemoryCannotBeUnmapped) {
    Simulated backend(device_with(Slabs::expandable, 64 * mib));
    CachingOptions options;
    options.hard_limit = 0.25;
    CachingAllocator allocator(backend, 0, options);
    const StreamHandle one = backend.stream();
    void* const free = allocator.allocate(16 * mib, one);
    allocator.deallocate(free);
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::unmap_memory, 1, 1}};
    backend.set_faults(faults);
    void* const block = allocator.try_allocate(16 * mib, backend.stream());
    EXPECT_NE(block, nullptr) << "the second try succeeds";
    EXPECT_EQ(allocator.statistics().capacity_bytes, 16 * mib);
    allocator.deallocate(block);
}

}  // namespace
}  // namespace tensorpool
