#include <gtest/gtest.h>

#include <tensorpool/stash_statistics.hpp>

#include "rest/stash_table.hpp"
#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;

TEST(StashToJson, ContainsEveryMetric) {
    const StashStatistics stash = {
        .name = "weights", .kind = StashStatistics::Kind::frozen, .budget = 3, .misses = 77};
    const Json read = JsonReader::read(to_json(stash)).value();
    EXPECT_EQ(read.members.at("name").text, "weights");
    EXPECT_EQ(read.members.at("kind").text, "frozen");
    EXPECT_EQ(read.members.at("budget").number, 3U);
    EXPECT_EQ(read.members.at("misses").number, 77U);
    for (const statistics::Field& metric : statistics::stashes::fields) {
        if (metric.use != statistics::Use::shown) continue;
        EXPECT_TRUE(read.members.contains(std::string(metric.name))) << metric.name.view();
    }
}

TEST(StashRatio, OfNothingIsZero) {
    EXPECT_EQ(StashStatistics().ratio(), 0);
}

}  // namespace
}  // namespace tensorpool
