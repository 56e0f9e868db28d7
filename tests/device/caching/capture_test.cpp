#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::DeviceCalls;
using test::kib;
using test::mib;
using test::Slabs;
using Simulated = test::Device;

class Capture : public ::testing::TestWithParam<Slabs> {
protected:
    Capture()
        : backend(with_capture(GetParam())), allocator(backend, 0), stream(backend.stream()) {}
    ~Capture() override { EXPECT_EQ(backend.hazard_report(), ""); }

    static SimulationOptions with_capture(Slabs slabs) {
        SimulationOptions options = device_with(slabs, 256 * mib);
        options.graph_capture = true;
        return options;
    }

    std::uint64_t begin() {
        EXPECT_EQ(backend.begin_capture(0, stream), DeviceStatus::ok);
        CaptureState state;
        EXPECT_EQ(backend.capture_state(0, stream, state), DeviceStatus::ok);
        return state.id;
    }
    GraphHandle end() {
        GraphHandle graph = nullptr;
        EXPECT_EQ(backend.end_capture(0, stream, &graph), DeviceStatus::ok);
        return graph;
    }

    Simulated backend;
    CachingAllocator allocator;
    StreamHandle stream;
};

TEST_P(Capture, BlocksComeFromAndReturnToThePoolOfTheCapture) {
    allocator.reserve_for_capture(8 * mib);
    void* const before = allocator.allocate(4096, stream);
    allocator.deallocate(before);
    const std::uint64_t id = begin();
    void* const block = allocator.allocate(4096, stream);
    EXPECT_NE(block, before);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.allocate(4096, stream), block) << "in the capture";
    allocator.deallocate(block);
    const GraphHandle graph = end();
    EXPECT_EQ(allocator.allocate(4096, stream), before) << "outside the capture";
    EXPECT_EQ(allocator.statistics().captured_bytes, 8 * mib);
    allocator.deallocate(before);
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
    allocator.release_capture(id);
    EXPECT_EQ(allocator.statistics().captured_bytes, 0U);
}

TEST_P(Capture, TrimKeepsItsMemoryUntilReleaseCapture) {
    allocator.reserve_for_capture(8 * mib);
    const std::uint64_t id = begin();
    void* const small = allocator.allocate(4096, stream);
    void* const large = allocator.allocate(4 * mib, stream);
    EXPECT_EQ(backend.fill_async(0, large, 1, 4 * mib, stream), DeviceStatus::ok);
    allocator.deallocate(small);
    allocator.deallocate(large);
    const GraphHandle graph = end();
    EXPECT_EQ(allocator.trim(), 0U);
    EXPECT_EQ(backend.launch_graph(0, graph, stream), DeviceStatus::ok);
    backend.synchronize(stream);
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
    allocator.release_capture(id);
    EXPECT_EQ(allocator.trim(), 8 * mib);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
}

TEST_P(Capture, FailedGrowthWithoutReserveIsExplained) {
    (void)begin();
    try {
        (void)allocator.allocate(4096, stream);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::capture);
        EXPECT_NE(std::string(error.what()).find("reserve_for_capture before the capture begins"),
                  std::string::npos)
            << error.what();
    }
    (void)end();
    backend.clear_hazards();  // the rejected call is reported as one
    EXPECT_NE(allocator.try_allocate(4096, stream), nullptr);
}

TEST_P(Capture, UseByACapturedStreamIsWaitedForAfterTheCapture) {
    void* const block = allocator.allocate(4096);
    allocator.record_use(block, stream);
    (void)begin();
    allocator.deallocate(block);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 1U);
    EXPECT_EQ(DeviceCalls(backend).events, 0U);
    (void)end();
    void* const other = allocator.allocate(8192);
    EXPECT_EQ(DeviceCalls(backend).events, 1U);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 0U);
    allocator.deallocate(other);
}

TEST_P(Capture, BlockInUseReturnsToItsStreamAfterTheGraphIsDestroyed) {
    allocator.reserve_for_capture(2 * mib);
    const std::uint64_t id = begin();
    void* const block = allocator.allocate(4096, stream);
    const GraphHandle graph = end();
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
    allocator.release_capture(id);
    allocator.release_capture(id);  // has no effect the second time
    allocator.deallocate(block);
    EXPECT_EQ(allocator.allocate(4096, stream), block);
    allocator.deallocate(block);
}

TEST_P(Capture, MemoryOfAnEndedStreamsGraphGoesToTheDefaultStream) {
    allocator.reserve_for_capture(8 * mib);
    const std::uint64_t id = begin();
    void* const block = allocator.allocate(4096, stream);
    backend.writes(stream, block, "captured write");
    const GraphHandle graph = end();
    allocator.end_stream(stream);
    EXPECT_EQ(backend.destroy_stream(0, stream), DeviceStatus::ok);
    EXPECT_EQ(backend.launch_graph(0, graph, nullptr), DeviceStatus::ok);
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
    allocator.release_capture(id);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.allocate(4096), block);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), 8 * mib);
}

TEST_P(Capture, CapturedStreamIsNotQueried) {
    void* const block = allocator.allocate(4096);
    void* const beside = allocator.allocate(4096);
    void* const other = allocator.allocate(4096, stream);
    allocator.record_use(block, stream);
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::record_event, 1, 1}};
    backend.set_faults(faults);
    allocator.deallocate(block);  // no event could be recorded for it
    (void)begin();
    allocator.deallocate(beside);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 1U);
    EXPECT_EQ(allocator.trim(), 0U);
    EXPECT_EQ(backend.destroy_graph(0, end()), DeviceStatus::ok);
    allocator.deallocate(other);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 0U);
}

TEST_P(Capture, GraphMayBeLaunchedWhileItsBlockIsHeldBack) {
    allocator.reserve_for_capture(8 * mib);
    (void)begin();
    void* const block = allocator.allocate(4096, stream);
    backend.writes(stream, block, "captured write");
    const GraphHandle graph = end();
    const StreamHandle other = backend.stream();
    EXPECT_EQ(backend.launch_graph(0, graph, other), DeviceStatus::ok);
    allocator.record_use(block, other);
    allocator.deallocate(block);
    EXPECT_EQ(backend.launch_graph(0, graph, other), DeviceStatus::ok);
    EXPECT_TRUE(backend.step(0, other)) << "the first launch";
    EXPECT_EQ(allocator.trim(), 0U);
    EXPECT_EQ(allocator.statistics().deferred_blocks, 0U);
}

TEST_P(Capture, OtherThreadsCanAllocateLargeBlocksForACapturedStream) {
    (void)begin();
    void* block = nullptr;
    std::thread([&] { block = allocator.try_allocate(10 * mib, stream); }).join();
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(allocator.statistics().captured_bytes, 10 * mib);
    (void)end();
    allocator.deallocate(block);
}

TEST_P(Capture, ReleasedMemoryOfAGraphServesLargeRequests) {
    allocator.reserve_for_capture(64 * mib);
    const std::uint64_t id = begin();
    void* const block = allocator.allocate(40 * mib, stream);
    allocator.deallocate(block);
    const GraphHandle graph = end();
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
    allocator.release_capture(id);
    (void)DeviceCalls(backend);
    EXPECT_EQ(allocator.allocate(40 * mib, stream), block);
    EXPECT_EQ(DeviceCalls(backend).memory, 0U);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), 64 * mib);
}

TEST_P(Capture, ReleasedMemoryServesLargeBlocksBesideSmallOnes) {
    allocator.reserve_for_capture(8 * mib);
    const std::uint64_t id = begin();
    void* const first = allocator.allocate(mib, stream);
    void* const small = allocator.allocate(512, stream);
    void* const last = allocator.allocate(mib, stream);
    EXPECT_EQ(backend.destroy_graph(0, end()), DeviceStatus::ok);
    allocator.release_capture(id);
    void* const odd = allocator.allocate(2 * mib, stream);
    EXPECT_EQ(odd, static_cast<std::byte*>(last) + mib) << "512 bytes above a multiple of 2 MiB";
    for (void* const block : {first, small, last}) allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), 0U) << "merges blocks";
    void* const even = allocator.allocate(2 * mib, stream);
    EXPECT_EQ(even, first);
    allocator.deallocate(even);
    EXPECT_EQ(allocator.trim(), 0U) << "merges the 512 bytes between the blocks";
    EXPECT_EQ(allocator.usable_size(odd), 2 * mib);
    allocator.deallocate(odd);
    EXPECT_EQ(allocator.trim(), 8 * mib);
}

TEST_P(Capture, ReserveReleasesCachedMemoryBeforeItFails) {
    void* const block = allocator.allocate(200 * mib, stream);
    EXPECT_EQ(backend.fill_async(0, block, 1, 4096, stream), DeviceStatus::ok);
    allocator.deallocate(block);
    allocator.reserve_for_capture(200 * mib);
    EXPECT_EQ(allocator.statistics().captured_bytes, 200 * mib);
    EXPECT_THROW(allocator.reserve_for_capture(200 * mib), DeviceAllocationError);
}

TEST_P(Capture, ReserveDuringCaptureIsRejected) {
    (void)begin();
    try {
        allocator.reserve_for_capture(mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::capture);
    }
    (void)end();
    backend.clear_hazards();  // the rejected call is reported as one
}

TEST_P(Capture, PressureInOtherThreadsNeitherQueriesNorWaitsForACapturedStream) {
    allocator.deallocate(allocator.allocate(40 * mib, stream));
    void* const used = allocator.allocate(4096);
    allocator.record_use(used, stream);
    (void)begin();
    allocator.deallocate(used);
    DeviceAllocationFailure failure;
    std::thread([&] {
        try {
            (void)allocator.allocate(250 * mib);
        } catch (const DeviceAllocationError& error) {
            failure = error.failure();
        }
    }).join();
    EXPECT_EQ(failure.asked, 250 * mib);
    ASSERT_EQ(failure.holder_count, 1U);
    EXPECT_EQ(failure.holders[0].stream, stream);
    EXPECT_EQ(failure.holders[0].bytes, 4096U);
    (void)end();
}

TEST_P(Capture, TrimDuringCaptureKeepsMemoryAndMakesNoForbiddenCall) {
    allocator.deallocate(allocator.allocate(40 * mib, stream));
    (void)begin();
    EXPECT_EQ(allocator.trim(), 0U);
    (void)end();
    EXPECT_EQ(allocator.statistics().capacity_bytes, 40 * mib);
    EXPECT_EQ(allocator.trim(), 40 * mib);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
}

TEST_P(Capture, BlockInUseOfAReleasedPoolReturnsToItsOwnStream) {
    const CapturePool pool = {7, 8};
    allocator.reserve_for_capture(2 * mib);
    allocator.begin_capture_pool(pool, [this](StreamHandle of) { return of == stream; });
    (void)begin();
    void* const block = allocator.allocate(4096, stream);
    EXPECT_EQ(backend.destroy_graph(0, end()), DeviceStatus::ok);
    allocator.end_capture_pool(pool);
    allocator.release_capture_pool(pool);
    const StreamHandle other = backend.stream();
    void* const grown = allocator.allocate(40 * mib, other);  // waits for the device
    EXPECT_EQ(allocator.statistics().captured_bytes, 0U);
    EXPECT_EQ(backend.fill_async(0, block, 1, 4096, stream), DeviceStatus::ok);
    allocator.deallocate(block);
    EXPECT_NE(allocator.allocate(4096, other), block) << "work of its stream may use it";
    EXPECT_EQ(allocator.allocate(4096, stream), block);
    allocator.deallocate(grown);
}

TEST_P(Capture, PoolReleasedBeforeItEndsIsReturnedAfterwards) {
    const CapturePool pool = {7, 9};
    allocator.reserve_for_capture(4 * mib);
    allocator.begin_capture_pool(pool, [this](StreamHandle of) { return of == stream; });
    allocator.release_capture_pool(pool);
    allocator.deallocate(allocator.allocate(4096, stream));
    allocator.end_capture_pool(pool);
    (void)allocator.allocate(40 * mib, stream);
    EXPECT_EQ(allocator.statistics().captured_bytes, 0U);
    allocator.release_capture(std::uint64_t{1} << 63);  // the number of a pool has no effect
}

INSTANTIATE_TEST_SUITE_P(Slabs, Capture, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

TEST(AnnouncedCapture, IsNotQueriedBeforeItIsAnnounced) {
    SimulationOptions simulation = test::unwatched(device_with(Slabs::plain, 256 * mib));
    simulation.graph_capture = true;
    Simulated backend(simulation);
    CachingAllocator allocator(backend, 0);
    const StreamHandle stream = backend.stream();
    allocator.reserve_for_capture(2 * mib);
    void* const before = allocator.allocate(4096, stream);
    allocator.deallocate(before);
    EXPECT_EQ(backend.calls()[SimulatedCall::capture_state], 0U);
    allocator.begin_capture();
    EXPECT_EQ(backend.begin_capture(0, stream), DeviceStatus::ok);
    EXPECT_NE(allocator.allocate(4096, stream), before);
    GraphHandle graph = nullptr;
    EXPECT_EQ(backend.end_capture(0, stream, &graph), DeviceStatus::ok);
    allocator.end_capture();
    backend.reset_calls();
    EXPECT_EQ(allocator.allocate(4096, stream), before);
    EXPECT_EQ(backend.calls()[SimulatedCall::capture_state], 0U);
}

}  // namespace
}  // namespace tensorpool
