#include "formats/trace/history.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tensorpool::command::trace {
namespace {

TEST(RangeSet, JoinsAdjacentRanges) {
    RangeSet used;
    used.add({10, 20});
    used.add({30, 40});
    EXPECT_EQ(used.bytes(), 20U);
    used.add({20, 30});
    EXPECT_EQ(used.bytes(), 30U);
    ASSERT_EQ(used.all().size(), 1U);
    EXPECT_EQ(used.all()[0].begin, 10U);
    EXPECT_EQ(used.all()[0].end, 40U);
}

TEST(RangeSet, AgreesWithASetOfAddresses) {
    std::mt19937 random(1);
    RangeSet used;
    std::set<std::uint64_t> addresses;
    for (int i = 0; i < 500; ++i) {
        const std::uint64_t begin = random() % 5000;
        const std::uint64_t end = begin + random() % 40;
        used.add({begin, end});
        for (std::uint64_t address = begin; address < end; ++address) addresses.insert(address);
        ASSERT_EQ(used.bytes(), addresses.size()) << i;
    }
    std::uint64_t last = 0;
    for (const Range range : used.all()) {
        EXPECT_TRUE(last == 0 || range.begin > last) << "ranges touch";
        last = range.end;
    }
}

}  // namespace
}  // namespace tensorpool::command::trace
