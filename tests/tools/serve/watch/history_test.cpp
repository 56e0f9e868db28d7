#include "serve/watch/history.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/serve/made_up_processes.hpp"

namespace tensorpool::command::serve {
namespace {

using nlohmann::json;
using testing::at_second;
using testing::made_up_pool;
using testing::set_time;

ProcessSnapshot snapshot_of(std::vector<PoolStatistics> pools, double seconds) {
    ProcessSnapshot snapshot;
    snapshot.pools = std::move(pools);
    set_time(snapshot, seconds);
    return snapshot;
}

json past(const History& history, double seconds) {
    return json::parse(history.to_json(7, at_second(seconds).steady_ns));
}

TEST(ServedHistory, IsEmptyBeforeTheFirstSnapshot) {
    EXPECT_EQ(past(History(), 0), json::parse(R"({"process":7,"pools":[]})"));
}

TEST(ServedHistory, WritesEachMetricByNameWithItsTime) {
    History history;
    PoolStatistics pool = made_up_pool(3, "weights");
    pool.parked_bytes = 1;
    pool.depot_bytes = 2;
    pool.span_bytes = 3;
    pool.cached_bytes = 4;
    pool.free_bytes = 5;
    pool.limit_bytes = 6;
    ProcessRates rates;
    rates.seconds = 1;
    rates.minor_faults = 12;
    rates.pools = {{3, 1, 100, 0, 0, 64, 1, 2, 3, 4, 5, 0, 0.5, 0.25}};
    history.add(snapshot_of({pool}, 0.25), rates);
    const json parsed = past(history, 1).at("pools").at(0);
    EXPECT_EQ(parsed.at("id"), 3);
    EXPECT_EQ(parsed.at("name"), "weights");
    EXPECT_EQ(parsed.at("t"), json::array({1'800'000'000.25}));
    EXPECT_EQ(parsed.at("series"), json::parse(R"({
        "in_use":[3000],"magazine":[1],"depot":[2],"span":[3],"extent":[9],"capacity":[15000],
        "limit":[6],"from_magazines":[1],"from_depots":[2],"from_spans":[3],"from_extents":[4],
        "from_system":[5],"allocated":[64],"rounding":[0.25],"hit_ratio":[0.5],"faults":[12]})"));
}

TEST(ServedHistory, WritesNullForUnknownValues) {
    History history;
    history.add(snapshot_of({made_up_pool(1, "a")}, 0), {});
    const json series = past(history, 1).at("pools").at(0).at("series");
    EXPECT_EQ(series.at("in_use"), json::array({1000}));
    for (const char* name : {"limit", "from_system", "rounding", "hit_ratio", "faults"}) {
        EXPECT_EQ(series.at(name), json::array({nullptr})) << name;
    }
}

TEST(ServedHistory, EndsBeforeTheFollowingSnapshot) {
    History history;
    for (const double second : {0.0, 1.0, 2.0}) {
        history.add(snapshot_of({made_up_pool(1, "a")}, second), {});
    }
    EXPECT_EQ(past(history, 2).at("pools").at(0).at("t").size(), 2u);
}

TEST(ServedHistory, DropsDestroyedPools) {
    History history;
    history.add(snapshot_of({made_up_pool(1, "a"), made_up_pool(2, "b")}, 0), {});
    history.add(snapshot_of({made_up_pool(2, "b")}, 1), {});
    const json pools = past(history, 9).at("pools");
    ASSERT_EQ(pools.size(), 1u);
    EXPECT_EQ(pools.at(0).at("id"), 2);
    EXPECT_EQ(pools.at(0).at("t").size(), 2u);
}

TEST(ServedHistory, GivesLaterPoolsTheFaultsOfTheirTime) {
    History history;
    for (int second = 0; second < 3; ++second) {
        std::vector<PoolStatistics> pools = {made_up_pool(1, "a")};
        if (second == 2) pools.push_back(made_up_pool(2, "b"));
        ProcessRates rates;
        rates.seconds = 1;
        rates.minor_faults = 10.0 * second;
        history.add(snapshot_of(pools, second), rates);
    }
    const json pools = past(history, 9).at("pools");
    EXPECT_EQ(pools.at(0).at("series").at("faults"), json::array({0, 10, 20}));
    EXPECT_EQ(pools.at(1).at("series").at("faults"), json::array({20}));
}

TEST(ServedHistory, HandlesClocksThatAreSetBack) {
    History history;
    ProcessSnapshot snapshot = snapshot_of({made_up_pool(1, "a")}, 10);
    history.add(snapshot, {});
    snapshot.time_ns += 1'000'000'000;
    snapshot.time_unix_ns -= 3'600'000'000'000;
    history.add(snapshot, {});
    const json times = past(history, 99).at("pools").at(0).at("t");
    EXPECT_LT(times.at(0), times.at(1));
}

TEST(ServedHistory, IsValidJsonForAnyPoolNames) {
    History history;
    history.add(snapshot_of({made_up_pool(1, "</script>\"\\\x01\n\xff\xc3")}, 0), {});
    const std::string name = past(history, 1).at("pools").at(0).at("name");
    EXPECT_EQ(name, "</script>\"\\\x01\n\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace tensorpool::command::serve
