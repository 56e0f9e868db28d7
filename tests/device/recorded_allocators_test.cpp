// The calls of allocators of pinned and of host memory that a recorder receives.

#include <gtest/gtest.h>

#include <tensorpool/device/host_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/host_memory_source.hpp>
#include <tensorpool/device/pinned_allocator.hpp>

#include "device/recording.hpp"

namespace tensorpool {
namespace {

using test::recorded_calls;
using test::Recording;

void expect_one_block(const Recording& recording, const void* block, const DeviceAllocator& of) {
    const auto made = recording.of(TraceAction::allocate);
    ASSERT_EQ(made.size(), 1U) << recording.actions();
    EXPECT_EQ(made[0].address, block);
    EXPECT_EQ(made[0].bytes, 5000U);
    EXPECT_EQ(made[0].source, of.statistics().id);
    const auto freed = recording.of(TraceAction::deallocate);
    ASSERT_EQ(freed.size(), 1U) << recording.actions();
    EXPECT_EQ(freed[0].address, block);
}

TEST(RecordedAllocators, OfPinnedMemoryRecordBlocksAndSlabs) {
    HostBackend backend;
    PinnedAllocator allocator(backend, 0);
    allocator.trim();  // the first call sets up the hooks
    const Recording recording;
    void* const block = allocator.allocate(5000);
    allocator.deallocate(block);
    expect_one_block(recording, block, allocator);
    EXPECT_EQ(recording.of(TraceAction::slab).size(), 1U);
    allocator.trim();
    EXPECT_EQ(recording.of(TraceAction::slab_end).size(), 1U);
}

TEST(RecordedAllocators, OfHostMemoryRecordBlocks) {
    HostBackend backend;
    HostAllocator allocator(backend, {DeviceType::cpu, 0}, system_memory_source());
    allocator.deallocate(allocator.allocate(100));
    const Recording recording;
    void* const block = allocator.allocate(5000);
    allocator.deallocate(block);
    expect_one_block(recording, block, allocator);
    EXPECT_EQ(recording.of(TraceAction::capacity).size(), 2U);
}

}  // namespace
}  // namespace tensorpool
