#include <gtest/gtest.h>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using test::unwatched;

class BlockIdentityTest : public ::testing::TestWithParam<Slabs> {
protected:
    test::Device backend{unwatched(device_with(GetParam(), 256 * mib))};
    CachingAllocator allocator{backend, 0};
};

TEST_P(BlockIdentityTest, StaysWhileTheBlockIsReused) {
    void* const block = allocator.allocate(1000);
    const BlockIdentity first = allocator.identify(block);
    EXPECT_NE(first.number, 0u);
    EXPECT_EQ(first.use_count, 1u);
    for (std::uint64_t uses = 2; uses < 5; ++uses) {
        allocator.deallocate(block);
        ASSERT_EQ(allocator.allocate(1000), block);
        EXPECT_EQ(allocator.identify(block).number, first.number);
        EXPECT_EQ(allocator.identify(block).use_count, uses);
    }
}

TEST_P(BlockIdentityTest, DiffersBetweenBlocks) {
    void* const one = allocator.allocate(1000);
    void* const other = allocator.allocate(1000);
    EXPECT_NE(allocator.identify(one).number, allocator.identify(other).number);
}

TEST_P(BlockIdentityTest, IsNewAfterTheBlockWasMergedAndDivided) {
    void* const one = allocator.allocate(3 * mib);
    const BlockIdentity before = allocator.identify(one);
    allocator.deallocate(one);
    // A miss moves the freed block to the sets, where it is merged with the rest of its slab.
    void* const larger = allocator.allocate(5 * mib);
    allocator.deallocate(larger);
    (void)allocator.allocate(4 * mib);
    void* const again = allocator.allocate(3 * mib);
    EXPECT_NE(allocator.identify(again).number, before.number);
    EXPECT_EQ(allocator.identify(again).use_count, 1u);
}

TEST_P(BlockIdentityTest, IsZeroWithoutABlockInUse) {
    char* const block = static_cast<char*>(allocator.allocate(1000));
    EXPECT_EQ(allocator.identify(block + 512).number, 0u);
    EXPECT_EQ(allocator.identify(nullptr).number, 0u);
    allocator.deallocate(block);
    EXPECT_EQ(allocator.identify(block).number, 0u);
    EXPECT_EQ(allocator.identify(block).use_count, 0u);
}

TEST_P(BlockIdentityTest, OfScalarsIsThatOfTheBlockTheyShare) {
    void* const one = allocator.allocate_scalar(4);
    void* const other = allocator.allocate_scalar(8);
    EXPECT_NE(allocator.identify(one).number, 0u);
    EXPECT_EQ(allocator.identify(one).number, allocator.identify(other).number);
    EXPECT_EQ(allocator.identify(one).use_count, 1u);
}

INSTANTIATE_TEST_SUITE_P(Both, BlockIdentityTest,
                         ::testing::Values(Slabs::plain, Slabs::expandable), [](const auto& slabs) {
                             return slabs.param == Slabs::plain ? "Plain" : "Expandable";
                         });

}  // namespace
}  // namespace tensorpool
