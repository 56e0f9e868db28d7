#include "replay/plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "common/settings.hpp"

namespace tensorpool::command::replay {
namespace {

TEST(FloorOffsets, FreeRangesAreReused) {
    FloorOffsets offsets;
    const std::uint64_t first = offsets.allocate(1000, 4);
    offsets.allocate(1000, 4);
    offsets.deallocate(first);
    EXPECT_EQ(offsets.allocate(500, 4), first);
    EXPECT_EQ(offsets.span_bytes(), 2016u);
}

TEST(FloorOffsets, AdjacentFreeRangesAreJoined) {
    FloorOffsets offsets;
    const std::uint64_t first = offsets.allocate(1024, 4);
    const std::uint64_t second = offsets.allocate(1024, 4);
    offsets.allocate(1024, 4);
    offsets.deallocate(second);
    offsets.deallocate(first);
    EXPECT_EQ(offsets.allocate(2048, 4), first);
}

TEST(FloorOffsets, RangeGrowsByTheMissingBytes) {
    FloorOffsets offsets;
    offsets.deallocate(offsets.allocate(1024, 4));
    EXPECT_EQ(offsets.allocate(4096, 4), 0u);
    EXPECT_EQ(offsets.span_bytes(), 4096u);
}

TEST(FloorOffsets, RejectsARangeAboveTheAddressSpace) {
    FloorOffsets offsets;
    EXPECT_EQ(offsets.allocate(1, 46), 0u);
    EXPECT_EQ(offsets.allocate(1, 46), std::uint64_t{1} << 46);
    EXPECT_THROW(offsets.allocate(1, 46), CommandError);
}

TEST(FloorOffsets, BlocksAreAlignedAndDoNotOverlap) {
    std::mt19937 random(1);
    FloorOffsets offsets;
    std::map<std::uint64_t, std::uint64_t> held;
    for (int i = 0; i < 20'000; ++i) {
        if (held.size() > 100 || (!held.empty() && random() % 2 == 0)) {
            const auto freed =
                std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
            offsets.deallocate(freed->first);
            held.erase(freed);
            continue;
        }
        const std::uint64_t bytes = 1 + random() % 5000;
        const auto alignment_log2 = static_cast<unsigned>(random() % 13);
        const std::uint64_t offset = offsets.allocate(bytes, alignment_log2);
        EXPECT_EQ(offset % (std::uint64_t{1} << alignment_log2), 0u);
        const auto next = held.lower_bound(offset);
        if (next != held.end()) {
            ASSERT_LE(offset + bytes, next->first);
        }
        if (next != held.begin()) {
            ASSERT_LE(std::prev(next)->first + std::prev(next)->second, offset);
        }
        held[offset] = bytes;
    }
}

}  // namespace
}  // namespace tensorpool::command::replay
