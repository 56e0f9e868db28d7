// The calls of a caching allocator that a recorder receives.

#include <gtest/gtest.h>

#include <tensorpool/device/caching_allocator.hpp>

#include "device/caching/caching_device.hpp"
#include "device/recording.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::recorded_calls;
using test::RecordedCall;
using test::Recording;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

class RecordedCalls : public ::testing::TestWithParam<Slabs> {
protected:
    RecordedCalls() : backend(unwatched(device_with(GetParam()))), allocator(backend, 0) {
        // The first call sets up the hooks and leaves a parked block for the stream.
        allocator.deallocate(allocator.allocate(4096));
    }

    Simulated backend;
    CachingAllocator allocator;
};
INSTANTIATE_TEST_SUITE_P(Plain, RecordedCalls, ::testing::Values(Slabs::plain));
INSTANTIATE_TEST_SUITE_P(Expandable, RecordedCalls, ::testing::Values(Slabs::expandable));

TEST_P(RecordedCalls, AreCompleteAfterTheFastPathWasOpen) {
    const Recording recording;
    void* const block = allocator.allocate(4000);
    allocator.deallocate(block);
    ASSERT_EQ(recorded_calls().size(), 2U) << recording.actions();
    EXPECT_EQ(recorded_calls()[0].action, TraceAction::allocate);
    EXPECT_EQ(recorded_calls()[0].source, allocator.statistics().id);
    EXPECT_EQ(recorded_calls()[0].address, block);
    EXPECT_EQ(recorded_calls()[0].bytes, 4000U);
    EXPECT_EQ(recorded_calls()[1].action, TraceAction::deallocate);
    EXPECT_EQ(recorded_calls()[1].bytes, 4096U);
}

TEST_P(RecordedCalls, IncludeAStreamOtherThanTheDefault) {
    const StreamHandle stream = backend.stream();
    const Recording recording;
    allocator.deallocate(allocator.allocate(4096, stream));
    const auto streams = recording.of(TraceAction::stream);
    ASSERT_EQ(streams.size(), 1U);
    EXPECT_EQ(streams[0].address, static_cast<const void*>(stream));
}

TEST_P(RecordedCalls, IncludeFreeAndReuseOfHeldBackBlocks) {
    const StreamHandle user = backend.stream();
    const Recording recording;
    void* const block = allocator.allocate(4096);
    allocator.record_use(block, user);
    allocator.deallocate(block);
    EXPECT_EQ(recording.of(TraceAction::defer).size(), 1U);
    EXPECT_EQ(recording.of(TraceAction::deallocate).size(), 0U);
    backend.synchronize(user);
    allocator.trim();
    const auto freed = recording.of(TraceAction::deallocate);
    ASSERT_EQ(freed.size(), 1U) << recording.actions();
    EXPECT_EQ(freed[0].address, block);
}

TEST_P(RecordedCalls, IncludeSlabs) {
    const Recording recording;
    void* const block = allocator.allocate(40 * mib);
    allocator.deallocate(block);
    const std::size_t held = allocator.statistics().capacity_bytes;
    std::size_t gained = 0;
    for (const RecordedCall& slab : recording.of(TraceAction::slab)) gained += slab.bytes;
    EXPECT_GE(gained, 40 * mib);
    EXPECT_GE(recording.of(TraceAction::capacity).size(), 1U);
    EXPECT_EQ(recording.of(TraceAction::capacity).back().bytes, held);
    backend.synchronize(nullptr);
    allocator.trim();
    std::size_t lost = 0;
    for (const RecordedCall& slab : recording.of(TraceAction::slab_end)) lost += slab.bytes;
    EXPECT_EQ(lost, held - allocator.statistics().capacity_bytes);
    EXPECT_GE(lost, gained);
}

TEST_P(RecordedCalls, IncludeFailedRequests) {
    const Recording recording;
    EXPECT_EQ(allocator.try_allocate(std::size_t{1} << 50), nullptr);
    const auto refused = recording.of(TraceAction::refuse);
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_EQ(refused[0].bytes, std::size_t{1} << 50);
}

TEST_P(RecordedCalls, ExcludeBlocksOfScalars) {
    const StreamHandle user = backend.stream();
    const Recording recording;
    void* const scalar = allocator.allocate_scalar(8);
    allocator.record_use(scalar, user);
    allocator.deallocate(scalar);
    backend.synchronize(user);
    allocator.trim();
    EXPECT_EQ(recording.of(TraceAction::allocate).size(), 1U);
    EXPECT_EQ(recording.of(TraceAction::deallocate).size(), 1U) << recording.actions();
}

}  // namespace
}  // namespace tensorpool
