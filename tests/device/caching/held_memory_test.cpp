// Why memory is held, by stream and by graph, in the segment that other processes read.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/caching/caching_device.hpp"
#include "device/device_table.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/segment/segment_image.hpp"

namespace tensorpool {
namespace {

using statistics::DeviceStreamRecord;
using test::device_with;
using test::mib;
using test::Slabs;
using Simulated = test::Device;

class HeldMemory : public ::testing::TestWithParam<Slabs> {
protected:
    HeldMemory() : backend(with_capture()), allocator(backend, 0) {}

    static SimulationOptions with_capture() {
        SimulationOptions options = device_with(GetParam(), 256 * mib);
        options.graph_capture = true;
        return options;
    }
    struct Held {
        std::uint64_t capture;
        std::uint64_t bytes;
        std::uint64_t free;
        std::uint64_t waiting;
        std::uint64_t since;
        bool operator==(const Held&) const = default;
    };
    /// What each stream of the allocator holds, in order of appearance. Streams that hold nothing
    /// and are not waited for are left out.
    std::vector<Held> held() const {
        std::vector<Held> all;
        statistics::SegmentImage image(statistics::segment().header());
        image.count();
        for (const DeviceStreamRecord& stream : image.records<DeviceStreamRecord>()) {
            if (stream.device != allocator.statistics().id) continue;
            if (stream.held_bytes + stream.waiting_bytes == 0) continue;
            all.push_back({stream.capture, stream.held_bytes, stream.free_bytes,
                           stream.waiting_bytes, stream.waiting_since_ns});
        }
        return all;
    }
    std::uint64_t held_sum() const {
        std::uint64_t sum = 0;
        for (const Held& one : held()) sum += one.bytes;
        return sum;
    }

    Simulated backend;
    CachingAllocator allocator;
};

TEST_P(HeldMemory, IsCountedForItsStreamUntilItIsGivenBack) {
    const StreamHandle stream = backend.stream();
    void* const block = allocator.allocate(40 * mib, stream);
    ASSERT_EQ(held().size(), 1U);
    EXPECT_EQ(held()[0], (Held{0, 40 * mib, 0, 0, 0}));
    allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), 40 * mib);
    EXPECT_TRUE(held().empty());
}

TEST_P(HeldMemory, OfAnEndedStreamBelongsToTheDefaultStream) {
    const StreamHandle stream = backend.stream();
    void* const block = allocator.allocate(40 * mib, stream);
    void* const small = allocator.allocate(4096);
    allocator.end_stream(stream);
    ASSERT_EQ(held().size(), 1U);
    EXPECT_EQ(held()[0].bytes, 42 * mib);
    EXPECT_EQ(held_sum(), allocator.statistics().capacity_bytes);
    allocator.deallocate(block);
    allocator.deallocate(small);
    (void)allocator.trim();
    EXPECT_TRUE(held().empty());
}

TEST_P(HeldMemory, WaitsForAStreamSinceItsOldestBlockWasFreed) {
    const StreamHandle stream = backend.stream();
    void* const one = allocator.allocate(4096);
    void* const two = allocator.allocate(4096);
    for (void* const block : {one, two}) {
        allocator.record_use(block, stream);
        EXPECT_EQ(backend.fill_async(0, block, 1, 4096, stream), DeviceStatus::ok);
    }
    allocator.deallocate(one);
    const auto waits = [this] {
        const std::vector<Held> all = held();
        return *std::find_if(all.begin(), all.end(), [](const Held& h) { return h.waiting != 0; });
    };
    const std::uint64_t since = waits().since;
    EXPECT_NE(since, 0U);
    EXPECT_EQ(waits().waiting, 4096U);
    allocator.deallocate(two);
    EXPECT_EQ(waits().waiting, 8192U);
    EXPECT_EQ(waits().since, since);
    backend.synchronize(stream);
    (void)allocator.trim();
    for (const Held& one_of : held()) {
        EXPECT_EQ(one_of.waiting, 0U);
        EXPECT_EQ(one_of.since, 0U);
    }
}

TEST_P(HeldMemory, OfAGraphIsCountedApartUntilItIsReleased) {
    const StreamHandle stream = backend.stream();
    allocator.reserve_for_capture(8 * mib);
    EXPECT_EQ(backend.begin_capture(0, stream), DeviceStatus::ok);
    CaptureState state;
    EXPECT_EQ(backend.capture_state(0, stream, state), DeviceStatus::ok);
    allocator.deallocate(allocator.allocate(4096, stream));
    GraphHandle graph = nullptr;
    EXPECT_EQ(backend.end_capture(0, stream, &graph), DeviceStatus::ok);
    ASSERT_EQ(held().size(), 1U);
    EXPECT_EQ(held()[0].capture, state.id);
    EXPECT_EQ(held()[0].bytes, 8 * mib);
    EXPECT_EQ(backend.destroy_graph(0, graph), DeviceStatus::ok);
    allocator.release_capture(state.id);
    ASSERT_EQ(held().size(), 1U);
    EXPECT_EQ(held()[0].capture, 0U);
    (void)allocator.trim();
    EXPECT_TRUE(held().empty());
}

INSTANTIATE_TEST_SUITE_P(Slabs, HeldMemory, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

}  // namespace
}  // namespace tensorpool
