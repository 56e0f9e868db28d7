#include <tensorpool/metrics.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/process_snapshot.hpp>

#include "snapshot/typed_records.hpp"
#include "statistics/json.hpp"
#include "statistics/sums/pool_tables.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;

bool describes(const std::string& of, const std::string& name) {
    for (const MetricDescription& one : describe_metrics()) {
        if (one.of == of && one.name == name) return true;
    }
    return false;
}

TEST(DescribeMetrics, DescribesEveryMetric) {
    std::set<std::string> seen;
    for (const MetricDescription& one : describe_metrics()) {
        const std::string name = std::string(one.of) + '.' + one.name;
        EXPECT_TRUE(seen.insert(name).second) << name << " twice";
        EXPECT_STRNE(one.unit, "") << name;
        EXPECT_TRUE(std::set<std::string>({"gauge", "total", "peak"}).contains(one.kind)) << name;
        const std::string sentence = one.sentence;
        EXPECT_TRUE(sentence.ends_with('.') && sentence.find('.') == sentence.size() - 1) << name;
        const bool is_size = std::string(one.name).ends_with("_bytes");
        EXPECT_EQ(is_size, std::string(one.unit) == "bytes") << name;
        const bool is_peak = std::string(one.name).starts_with("peak_");
        EXPECT_EQ(is_peak, std::string(one.kind) == "peak") << name;
        EXPECT_TRUE(*one.pytorch == '\0' || std::string(one.of) == "device") << name;
    }
    EXPECT_GT(seen.size(), 80U);
}

TEST(DescribeMetrics, DescribesEveryNumberInJson) {
    const auto check = [](const std::string& of, const Json& object) {
        for (const auto& [name, value] : object.members) {
            if (!value.members.empty() || name == "version" || name == "name" || name == "kind" ||
                name == "device" || name == "buckets" || name == "state") {
                continue;
            }
            EXPECT_TRUE(describes(of, name)) << of << '.' << name;
        }
    };
    const Json pool = JsonReader::read(to_json(PoolStatistics())).value();
    check("pool", pool);
    check("bucket", pool.members.at("buckets").elements.at(0));
    check("large", pool.members.at("large"));
    check("arena", JsonReader::read(to_json(ArenaStatistics())).value());
    check("device", JsonReader::read(to_json(DeviceStatistics())).value());
    check("planned", JsonReader::read(to_json(PlannedArenaStatistics())).value());
    check("scope", JsonReader::read(to_json(ScopeStatistics())).value());
}

// All words of these structures except the names are metrics.
TEST(DescribeMetrics, EveryWordHasMetric) {
    using namespace statistics;
    EXPECT_EQ(buckets::table.shown() * 8, sizeof(BucketStatistics));
    EXPECT_EQ(large_blocks::table.shown() * 8, sizeof(LargeStatistics));
    EXPECT_EQ(pools::table.shown() * 8,
              offsetof(PoolStatistics, failures_by_limit) - offsetof(PoolStatistics, id));
    EXPECT_EQ(arenas::table.shown(), value_count<ArenaStatistics>());
    EXPECT_EQ(devices::table.shown(), value_count<DeviceStatistics>());
    EXPECT_EQ(device_streams::table.shown(), value_count<DeviceStreamStatistics>());
    EXPECT_EQ(planned_arenas::table.shown(), value_count<PlannedArenaStatistics>());
    EXPECT_EQ(budgets::table.shown(), value_count<BudgetStatistics>());
    EXPECT_EQ(stashes::table.shown(), value_count<StashStatistics>());
    EXPECT_EQ(scopes::table.shown(), value_count<ScopeStatistics>());
}

TEST(DescribeMetrics, ListsPyTorchNames) {
    std::set<std::string> words;
    for (const MetricDescription& one : describe_metrics()) words.insert(one.pytorch);
    for (const char* word : {"allocated_bytes.all.current", "reserved_bytes.all.current",
                             "requested_bytes.all.current", "inactive_split_bytes.all.current",
                             "num_alloc_retries", "num_ooms"}) {
        EXPECT_TRUE(words.contains(word)) << word;
    }
}

}  // namespace
}  // namespace tensorpool
