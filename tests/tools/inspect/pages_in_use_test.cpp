#include "inspect/analysis.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tensorpool::command::inspect {
namespace {

TEST(PagesInUse, CountsASharedPageOnce) {
    PagesInUse pages(4096);
    pages.add({0x1000, 0x1040});
    pages.add({0x1040, 0x1080});
    EXPECT_EQ(pages.bytes(), 4096U);
    pages.remove({0x1000, 0x1040});
    EXPECT_EQ(pages.bytes(), 4096U);
    pages.remove({0x1040, 0x1080});
    EXPECT_EQ(pages.bytes(), 0U);
}

TEST(PagesInUse, CountsPartlyCoveredPages) {
    PagesInUse pages(4096);
    pages.add({0x1fff, 0x4001});  // one byte of the first and of the last
    EXPECT_EQ(pages.bytes(), 4 * 4096U);
    pages.add({0x8000, 0x9000});
    EXPECT_EQ(pages.bytes(), 5 * 4096U);
    pages.add({0x5000, 0x5000});
    EXPECT_EQ(pages.bytes(), 5 * 4096U);
}

TEST(PagesInUse, AgreesWithCountingEveryPage) {
    std::mt19937 random(1);
    PagesInUse pages(16);
    std::map<std::uint64_t, int> counts;
    std::vector<Range> blocks;
    for (int i = 0; i < 2000; ++i) {
        const bool ends = !blocks.empty() && random() % 2 == 0;
        // The blocks do not overlap: each lies within its own 100 addresses.
        const std::uint64_t begin = static_cast<std::uint64_t>(i) * 100 + random() % 50;
        const Range block = ends ? blocks.back() : Range{begin, begin + random() % 50};
        ends ? blocks.pop_back() : blocks.push_back(block);
        ends ? pages.remove(block) : pages.add(block);
        for (std::uint64_t page = block.begin / 16; block.bytes() > 0; ++page) {
            if (page * 16 >= block.end) break;
            counts[page] += ends ? -1 : 1;
            if (counts[page] == 0) counts.erase(page);
        }
        ASSERT_EQ(pages.bytes(), counts.size() * 16) << i;
    }
}

TEST(RangeOf, IsCutAtTheEndOfTheAddressSpace) {
    EXPECT_EQ(range_of(UINT64_MAX - 10, 100).end, UINT64_MAX);
    EXPECT_EQ(range_of(100, 10).end, 110U);
}

}  // namespace
}  // namespace tensorpool::command::inspect
