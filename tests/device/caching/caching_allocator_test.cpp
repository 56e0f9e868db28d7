#include <tensorpool/device/caching_allocator.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

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

class CachingAllocatorOn : public ::testing::TestWithParam<Slabs> {
protected:
    CachingAllocatorOn() : backend(unwatched(device_with(GetParam()))), allocator(backend, 0) {}

    Simulated backend;
    CachingAllocator allocator;
};

TEST_P(CachingAllocatorOn, FreedBlockIsReusedByItsStreamAtOnce) {
    void* const first = allocator.allocate(1000);
    allocator.deallocate(first);
    EXPECT_EQ(allocator.allocate(1024), first);
    EXPECT_EQ(allocator.statistics().parked_hits, 1U);
    EXPECT_EQ(allocator.usable_size(first), 1024U);
    allocator.deallocate(first);
}

TEST_P(CachingAllocatorOn, SmallRequestAllocatesOneSlabOf2MiB) {
    void* const block = allocator.allocate(256);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 2 * mib);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 512U);
    void* const other = allocator.allocate(256);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 2 * mib);
    allocator.deallocate(block);
    allocator.deallocate(other);
}

TEST_P(CachingAllocatorOn, StreamsDoNotReuseEachOthersBlocks) {
    const StreamHandle stream = backend.stream();
    void* const block = allocator.allocate(4096);
    allocator.deallocate(block);
    void* const other = allocator.allocate(4096, stream);
    EXPECT_NE(other, block);
    allocator.deallocate(other);
    EXPECT_EQ(allocator.allocate(4096, stream), other);
    EXPECT_EQ(allocator.statistics().streams, 2U);
    allocator.deallocate(other);
}

TEST_P(CachingAllocatorOn, BestFitIsSmallestThenLowestBlock) {
    void* blocks[7];
    const std::size_t sizes[] = {8192, 512, 4096, 512, 2048, 512, 4096};
    for (int i = 0; i < 7; ++i) blocks[i] = allocator.allocate(sizes[i]);
    for (const int i : {6, 0, 2, 4}) allocator.deallocate(blocks[i]);
    EXPECT_EQ(allocator.allocate(3000), blocks[2]);
    EXPECT_EQ(allocator.allocate(2000), blocks[4]);
}

TEST_P(CachingAllocatorOn, FreeNeighboursAreMerged) {
    void* const first = allocator.allocate(4096);
    void* const second = allocator.allocate(8192);
    void* const third = allocator.allocate(4096);
    allocator.deallocate(first);
    allocator.deallocate(third);
    allocator.deallocate(second);
    EXPECT_EQ(allocator.allocate(16384), first);
    EXPECT_EQ(allocator.statistics().free_blocks, 1U);
    allocator.deallocate(first);
}

TEST_P(CachingAllocatorOn, StatisticsAreExactWhileNoCallRuns) {
    void* const small = allocator.allocate(100);
    void* const large = allocator.allocate(3 * mib + 1);
    DeviceStatistics now = allocator.statistics();
    const std::size_t rounded = 3 * mib + 32 * kib;
    EXPECT_EQ(now.in_use_bytes, 512 + rounded);
    EXPECT_EQ(now.requested_in_use_bytes, 100 + 3 * mib + 1);
    EXPECT_EQ(now.capacity_bytes, now.in_use_bytes + now.free_bytes);
    EXPECT_EQ(now.growths, 2U);
    EXPECT_EQ(now.split_bytes, now.free_bytes);
    allocator.deallocate(large);
    allocator.deallocate(small);
    now = allocator.statistics();
    EXPECT_EQ(now.in_use_bytes, 0U);
    EXPECT_EQ(now.requested_in_use_bytes, 0U);
    EXPECT_EQ(now.parked_bytes, 512 + rounded);
    EXPECT_EQ(now.peak_in_use_bytes, 512 + rounded);
    EXPECT_EQ(now.allocations, 2U);
    EXPECT_EQ(now.deallocations, 2U);
}

TEST_P(CachingAllocatorOn, TrimReleasesMemoryWithoutPendingWork) {
    void* const block = allocator.allocate(4096);
    void* const large = allocator.allocate(100 * mib);
    allocator.deallocate(block);
    allocator.deallocate(large);
    const std::uint64_t held = allocator.statistics().capacity_bytes;
    EXPECT_EQ(allocator.trim(), held);
    const DeviceStatistics now = allocator.statistics();
    EXPECT_EQ(now.capacity_bytes, 0U);
    EXPECT_EQ(now.free_bytes, 0U);
    EXPECT_EQ(now.parked_bytes, 0U);
    EXPECT_EQ(now.given_back_bytes, held);
    DeviceMemoryInfo info;
    (void)backend.memory_info(0, info);
    EXPECT_EQ(info.free_bytes, info.total_bytes);
}

TEST_P(CachingAllocatorOn, TrimKeepsMemoryOfPendingWorkWithoutWaiting) {
    void* const block = allocator.allocate(4096);
    backend.writes(nullptr, block, "kernel");
    allocator.deallocate(block);
    (void)DeviceCalls(backend);
    EXPECT_EQ(allocator.trim(), 0U);
    EXPECT_EQ(DeviceCalls(backend).waits, 0U);
    backend.synchronize(nullptr);
    EXPECT_EQ(allocator.trim(), 2 * mib);
}

TEST_P(CachingAllocatorOn, BusyStreamReleasesMemoryFreedBeforeItsLastMark) {
    void* const block = allocator.allocate(4096);
    backend.writes(nullptr, block, "first");
    allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), 0U);  // leaves a mark behind "first"
    void* const other = allocator.allocate(100 * mib);
    backend.writes(nullptr, other, "second");
    EXPECT_TRUE(backend.step(0, nullptr));  // "first"
    EXPECT_TRUE(backend.step(0, nullptr));  // the mark
    EXPECT_EQ(allocator.trim(), 2 * mib);
    allocator.deallocate(other);
}

TEST_P(CachingAllocatorOn, ZeroBytesGiveNullptrWhichMayBeFreed) {
    EXPECT_EQ(allocator.allocate(0), nullptr);
    allocator.deallocate(nullptr);
    EXPECT_EQ(allocator.usable_size(nullptr), 0U);
    EXPECT_EQ(allocator.statistics().allocations, 0U);
}

TEST_P(CachingAllocatorOn, TooLargeRequestFailsWithoutSideEffects) {
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - 511, std::size_t{1} << 62}) {
        EXPECT_EQ(allocator.try_allocate(bytes), nullptr) << bytes;
        EXPECT_THROW(allocator.allocate(bytes), DeviceAllocationError) << bytes;
    }
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
    EXPECT_EQ(allocator.statistics().failures, 8U);
}

TEST_P(CachingAllocatorOn, DestructorReleasesBlocksInUse) {
    DeviceMemoryInfo before, after;
    (void)backend.memory_info(0, before);
    {
        CachingAllocator other(backend, 0);
        (void)other.allocate(100);
        (void)other.allocate(70 * mib);
        (void)other.allocate_scalar(4);
    }
    (void)backend.memory_info(0, after);
    EXPECT_EQ(before.free_bytes, after.free_bytes);
    EXPECT_EQ(DeviceCalls(backend).waits, 1U);
}

TEST_P(CachingAllocatorOn, FreeOfInvalidAddressTerminatesWithMessage) {
    void* const block = allocator.allocate(4096);
    int local = 0;
    EXPECT_DEATH(allocator.deallocate(&local), "caching on simulated:0: deallocate: 0x.* is no");
    EXPECT_DEATH(allocator.deallocate(static_cast<char*>(block) + 512), "is not a block");
    EXPECT_DEATH(allocator.deallocate(static_cast<char*>(block) + 8), "begins elsewhere");
    allocator.deallocate(block);
    EXPECT_DEATH(allocator.deallocate(block), "block of 4096 B at 0x.* is free already");
    (void)allocator.allocate(100);  // the free block joins its neighbours
    EXPECT_DEATH(allocator.deallocate(static_cast<char*>(block) + 512), "is not a block");
}

INSTANTIATE_TEST_SUITE_P(Slabs, CachingAllocatorOn,
                         ::testing::Values(Slabs::plain, Slabs::expandable), [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

TEST(CachingAllocator, InvalidOptionsAreRejectedByName) {
    Simulated backend(device_with(Slabs::plain));
    const auto refusal = [&](auto change, int device = 0) -> std::string {
        CachingOptions options;
        change(options);
        try {
            const CachingAllocator allocator(backend, device, options);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "";
    };
    const auto nothing = [](CachingOptions&) {};
    EXPECT_NE(refusal(nothing, 1).find("device is 1; there are 1 of type simulated"),
              std::string::npos);
    EXPECT_NE(refusal([](CachingOptions& o) { o.hard_limit = -1; }).find("hard_limit is -1"),
              std::string::npos);
    EXPECT_NE(refusal([](CachingOptions& o) { o.soft_limit = 2.5; }).find("up to 2"),
              std::string::npos);
    const auto crossed = [](CachingOptions& o) { o.soft_limit = 1, o.hard_limit = 0.5; };
    EXPECT_NE(refusal(crossed).find("expected at most the hard_limit"), std::string::npos);
    EXPECT_NE(refusal([](CachingOptions& o) { o.oversize_bytes = 1; }).find("oversize_bytes is 1"),
              std::string::npos);
    EXPECT_EQ(refusal(nothing), "");
}

TEST(CachingAllocator, OversizeBlockServesOnlyRequestsOfSimilarSize) {
    Simulated backend(unwatched(device_with(Slabs::plain)));
    CachingAllocator allocator(backend, 0);
    // Free slabs are kept as long as the bytes held stay below this peak.
    allocator.deallocate(allocator.allocate(300 * mib));
    (void)allocator.trim();
    void* const block = allocator.allocate(100 * mib);
    void* const small = allocator.allocate(512);
    allocator.deallocate(block);
    void* const other = allocator.allocate(20 * mib);
    EXPECT_NE(other, block);
    void* const near = allocator.allocate(70 * mib);
    EXPECT_EQ(near, block);
    EXPECT_EQ(allocator.usable_size(near), 100 * mib);
    for (void* each : {other, near, small}) allocator.deallocate(each);
    // The next request of the same size takes the fast path, although the block is larger.
    EXPECT_EQ(allocator.allocate(70 * mib), block);
    EXPECT_EQ(allocator.statistics().parked_hits, 1U);
}

TEST(CachingAllocator, OversizeBlockServesItsOwnSizeWithoutSlack) {
    Simulated backend(device_with(Slabs::plain, 256 * mib));
    CachingOptions options;
    options.oversize_slack_bytes = 0;
    CachingAllocator allocator(backend, 0, options);
    const std::size_t bytes = 64 * mib + 1;  // rounded to 65 MiB, in a slab of 66 MiB
    void* const block = allocator.allocate(bytes);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.try_allocate(bytes), block);
    EXPECT_EQ(allocator.statistics().growths, 1U);
    allocator.deallocate(block);
}

TEST(CachingAllocator, ShortLivedStreamsReuseAddresses) {
    Simulated backend(unwatched(device_with(Slabs::expandable, 256 * mib)));
    CachingAllocator allocator(backend, 0);
    std::uint64_t addresses = 0;
    for (int round = 0; round < 20; ++round) {
        const StreamHandle stream = backend.stream();
        allocator.deallocate(allocator.allocate(40 * mib, stream));
        allocator.deallocate(allocator.allocate(4096, stream));
        allocator.end_stream(stream);
        EXPECT_EQ(backend.destroy_stream(0, stream), DeviceStatus::ok);
        (void)allocator.trim();
        if (round == 0) addresses = allocator.statistics().address_bytes;
    }
    EXPECT_EQ(allocator.statistics().address_bytes, addresses);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool
