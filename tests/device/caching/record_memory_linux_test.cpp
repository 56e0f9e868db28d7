// The host memory that the records of device memory take.

#include <gtest/gtest.h>

#include <malloc.h>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using test::unwatched;

constexpr std::size_t gib = 1024 * mib;

/// Returns the bytes that the process has allocated from malloc.
std::ptrdiff_t malloc_bytes() noexcept {
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<std::ptrdiff_t>(info.uordblks + info.hblkhd);
}

TEST(RecordMemory, OfAReserveOf20GiBForCapturesIsBelow4MiB) {
    SimulatedBackend backend(unwatched(device_with(Slabs::expandable, 24 * gib)));
    CachingAllocator allocator(backend, 0);
    const std::ptrdiff_t before = malloc_bytes();
    allocator.reserve_for_capture(20 * gib);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 20 * gib);
    EXPECT_LT(malloc_bytes() - before, std::ptrdiff_t{4 * mib});
}

TEST(RecordMemory, OfALargeBlockDoesNotGrowWithItsSize) {
    SimulatedBackend backend(unwatched(device_with(Slabs::plain, 24 * gib)));
    CachingAllocator allocator(backend, 0);
    const std::ptrdiff_t before = malloc_bytes();
    void* const block = allocator.allocate(20 * gib);
    EXPECT_LT(malloc_bytes() - before, 256 * 1024);
    EXPECT_EQ(allocator.usable_size(block), 20 * gib);
    allocator.deallocate(block);
}

}  // namespace
}  // namespace tensorpool
