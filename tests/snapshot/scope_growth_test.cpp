#include <tensorpool/scope_statistics.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "statistics/json.hpp"

namespace tensorpool {
namespace {

ScopeGrowth grew(std::int64_t bytes) {
    ScopeGrowth growth;
    growth.bytes = bytes;
    growth.grew = true;
    return growth;
}

TEST(ScopeGrowthReport, ReportsNoGrowth) {
    EXPECT_EQ(to_text(ScopeGrowth{}), "did not grow");
    ScopeGrowth shrank;
    shrank.bytes = -64;
    shrank.blocks[0] = -1;
    EXPECT_EQ(to_text(shrank), "did not grow");
}

TEST(ScopeGrowthReport, ListsBuckets) {
    ScopeGrowth growth = grew(192);
    growth.blocks[0] = 3;
    EXPECT_EQ(to_text(growth), "grew by 192 B: 3 blocks of 64 B");
    growth = grew(1088);
    growth.blocks[0] = 1;
    growth.blocks[4] = 1;
    EXPECT_EQ(to_text(growth), "grew by 1 KiB: 1 block of 64 B, 1 block of 1 KiB");
}

TEST(ScopeGrowthReport, ListsShrunkBuckets) {
    ScopeGrowth growth = grew(-1984);
    growth.blocks[0] = 1;
    growth.blocks[4] = -2;
    EXPECT_EQ(to_text(growth),
              "grew in blocks, while bytes shrank by 1.9 KiB: 1 block of 64 B, "
              "2 blocks of 1 KiB fewer");
    growth = grew(0);
    growth.blocks[0] = 2;
    growth.blocks[1] = -1;
    EXPECT_EQ(to_text(growth),
              "grew in blocks, not in bytes: 2 blocks of 64 B, 1 block of 128 B fewer");
}

TEST(ScopeGrowthReport, ListsLargeBlocksWithBytes) {
    ScopeGrowth growth = grew(2 << 20);
    growth.large_blocks = 1;
    growth.large_bytes = 2 << 20;
    EXPECT_EQ(to_text(growth), "grew by 2 MiB: 1 large block of 2 MiB");
    growth.large_blocks = 2;
    EXPECT_EQ(to_text(growth), "grew by 2 MiB: 2 large blocks of 2 MiB in all");
    growth.large_blocks = 0;
    EXPECT_EQ(to_text(growth), "grew by 2 MiB: large blocks of 2 MiB more in all");
    growth.large_blocks = -1;
    EXPECT_EQ(to_text(growth), "grew by 2 MiB: 1 large block fewer, of 2 MiB more in all");
}

TEST(ScopeReport, JsonContainsFieldsByName) {
    ScopeStatistics scope;
    std::strcpy(scope.name, "for\"ward");
    scope.calls = 1;
    scope.open = 2;
    scope.allocations = 3;
    scope.deallocations = 4;
    scope.requested_bytes = 5;
    scope.allocated_bytes = 6;
    scope.deallocated_bytes = 7;
    scope.peak_bytes = 8;
    scope.out_of_order = 9;
    const auto json = testing::JsonReader::read(to_json(scope));
    ASSERT_TRUE(json);
    EXPECT_EQ(json->members.at("name").text, "for\"ward");
    EXPECT_EQ(json->members.size(), 10U);
    const char* const names[] = {"calls",
                                 "open",
                                 "allocations",
                                 "deallocations",
                                 "requested_bytes",
                                 "allocated_bytes",
                                 "deallocated_bytes",
                                 "peak_bytes",
                                 "out_of_order"};
    std::uint64_t expected = 0;
    for (const char* const name : names) EXPECT_EQ(json->members.at(name).number, ++expected);
}

}  // namespace
}  // namespace tensorpool
