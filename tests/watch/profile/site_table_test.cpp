#include "watch/profile/profiled_blocks.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "statistics/segment/segment.hpp"
#include "support/child_process.hpp"

namespace tensorpool::watch {
namespace {

using statistics::segment;

constexpr std::uint64_t offset_mask = (std::uint64_t{1} << SiteRecord::offset_bits) - 1;

// Addresses in no file.
std::vector<platform::ProgramFrame> stack_of(std::uintptr_t first, std::size_t depth) {
    std::vector<platform::ProgramFrame> frames;
    for (std::size_t i = 0; i != depth; ++i) frames.push_back({.address = first + i});
    return frames;
}

TEST(SiteTable, SameStackHasTheSameRecord) {
    static SiteTable table;
    SiteRecord* const site = table.find_or_add(stack_of(100, 3));
    ASSERT_NE(site, nullptr);
    EXPECT_EQ(table.find_or_add(stack_of(100, 3)), site);
    EXPECT_NE(table.find_or_add(stack_of(100, 2)), site);
    EXPECT_NE(table.find_or_add(stack_of(101, 3)), site);
    EXPECT_NE(site->id.load(), 0U);
    EXPECT_EQ(site->frame_count.load(), 3U);
    EXPECT_EQ(site->frames[2].load(), 102U);
}

TEST(SiteTable, FramesOfCodeAreModuleAndOffset) {
    static SiteTable table;
    const auto address = reinterpret_cast<std::uintptr_t>(&segment);
    const platform::ProgramFrame frame{.address = address};
    SiteRecord* const site = table.find_or_add({&frame, 1});
    ASSERT_NE(site, nullptr);
    const std::uint64_t word = site->frames[0].load();
    EXPECT_NE(word >> SiteRecord::offset_bits, 0U);
    EXPECT_LT(word & offset_mask, address);
}

TEST(SiteTable, DeepStackLosesItsOutermostFrames) {
    static SiteTable table;
    SiteRecord* const site = table.find_or_add(stack_of(1000, 100));
    ASSERT_NE(site, nullptr);
    EXPECT_EQ(site->frame_count.load(), SiteRecord::max_frames);
    EXPECT_EQ(site->frames[0].load(), 1000U);
}

// In a child, because it fills the segment of the process.
TEST(SiteTable, StacksWithoutRoomShareARecord) {
    EXPECT_TRUE(testing::holds_in_child([] {
        static SiteTable table;
        SiteRecord* last = nullptr;
        for (std::uintptr_t i = 0; i != count_of<SiteRecord> + 10; ++i) {
            last = table.find_or_add(stack_of(1'000'000 + 10 * i, 1));
            if (last == nullptr) return false;
        }
        return last == records_in<SiteRecord>(*segment().header()) && last->frame_count == 0 &&
               table.find_or_add(stack_of(1'000'000, 1)) != last;
    }));
}

}  // namespace
}  // namespace tensorpool::watch
