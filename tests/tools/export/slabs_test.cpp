#include "export/formats.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace tensorpool::command::export_ {
namespace {

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Pairs pairs(const Slabs& slabs) {
    Pairs found;
    for (const Range range : slabs.all()) found.emplace_back(range.begin, range.end);
    return found;
}

TEST(Slabs, AdjacentSlabsAreMerged) {
    Slabs slabs;
    slabs.add({100, 200});
    slabs.add({300, 400});
    EXPECT_FALSE(slabs.have_grown());
    EXPECT_EQ(pairs(slabs), (Pairs{{100, 200}, {300, 400}}));
    slabs.add({200, 300});
    EXPECT_TRUE(slabs.have_grown());
    EXPECT_EQ(pairs(slabs), (Pairs{{100, 400}}));
}

TEST(Slabs, AreRemovedInAnyPieces) {
    Slabs slabs;
    slabs.add({100, 400});
    slabs.remove({200, 250});
    EXPECT_EQ(pairs(slabs), (Pairs{{100, 200}, {250, 400}}));
    slabs.remove({0, 120});
    slabs.remove({390, 1000});
    slabs.remove({200, 250});  // absent
    EXPECT_EQ(pairs(slabs), (Pairs{{120, 200}, {250, 390}}));
    slabs.remove({150, 300});
    EXPECT_EQ(pairs(slabs), (Pairs{{120, 150}, {300, 390}}));
    slabs.remove({0, 1000});
    EXPECT_EQ(pairs(slabs), Pairs{});
}

TEST(Slabs, RemovedSlabsAreStillKnown) {
    Slabs slabs;
    slabs.add({100, 200});
    slabs.remove({100, 200});
    EXPECT_TRUE(slabs.has_known(100));
    EXPECT_TRUE(slabs.has_known(199));
    EXPECT_FALSE(slabs.has_known(200));
    EXPECT_FALSE(slabs.has_known(99));
}

TEST(Slabs, EmptyRangesAreIgnored) {
    Slabs slabs;
    slabs.add({100, 200});
    slabs.add({200, 200});
    slabs.remove({150, 150});
    EXPECT_EQ(pairs(slabs), (Pairs{{100, 200}}));
    EXPECT_FALSE(slabs.have_grown());
}

}  // namespace
}  // namespace tensorpool::command::export_
