#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <tensorpool/process_snapshot.hpp>

#include "snapshot/typed_records.hpp"
#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;

TEST(ProcessSnapshotToJson, ContainsFieldsByName) {
    ProcessSnapshot snapshot;
    snapshot.process = 77;
    snapshot.process_name = "a \"b\"";
    snapshot.library_version = "1.2";
    snapshot.time_ns = 5;
    snapshot.time_unix_ns = 6;
    snapshot.minor_faults = 7;
    snapshot.left_out["slots"] = 8;
    snapshot.pools.emplace_back();
    snapshot.arenas.emplace_back();
    snapshot.scratches.emplace_back();
    snapshot.devices.emplace_back().slabs = 11;
    snapshot.left_out["devices"] = 12;
    snapshot.left_out["device_streams"] = 13;
    snapshot.planned.emplace_back().served = 14;
    snapshot.left_out["planned"] = 15;
    snapshot.budgets.emplace_back().in_use_bytes = 16;
    snapshot.left_out["budgets"] = 17;
    snapshot.stashes.emplace_back().spilled_bytes = 18;
    snapshot.left_out["stashes"] = 19;
    snapshot.scopes.emplace_back().calls = 9;
    snapshot.threads.emplace_back().name = "worker";
    snapshot.entries = 10;
    const std::optional<Json> read = JsonReader::read(to_json(snapshot));
    ASSERT_TRUE(read) << to_json(snapshot);
    const auto& members = read->members;
    EXPECT_EQ(members.at("version").number, ProcessSnapshot::current_version);
    EXPECT_EQ(members.at("process").number, 77U);
    EXPECT_EQ(members.at("process_name").text, "a \"b\"");
    EXPECT_EQ(members.at("library_version").text, "1.2");
    EXPECT_EQ(members.at("time_ns").number, 5U);
    EXPECT_EQ(members.at("time_unix_ns").number, 6U);
    EXPECT_EQ(members.at("consistent").number, 1U);
    EXPECT_EQ(members.at("left_out").members.at("slots").number, 8U);
    EXPECT_EQ(members.at("pools").elements.size(), 1U);
    EXPECT_EQ(members.at("arenas").elements.size(), 1U);
    EXPECT_EQ(members.at("scratches").elements.size(), 1U);
    EXPECT_EQ(members.at("scopes").elements.at(0).members.at("calls").number, 9U);
    EXPECT_EQ(members.at("devices").elements.at(0).members.at("slabs").number, 11U);
    EXPECT_EQ(members.at("left_out").members.at("devices").number, 12U);
    EXPECT_EQ(members.at("left_out").members.at("device_streams").number, 13U);
    EXPECT_EQ(members.at("planned").elements.at(0).members.at("served").number, 14U);
    EXPECT_EQ(members.at("left_out").members.at("planned").number, 15U);
    EXPECT_EQ(members.at("budgets").elements.at(0).members.at("in_use_bytes").number, 16U);
    EXPECT_EQ(members.at("left_out").members.at("budgets").number, 17U);
    EXPECT_EQ(members.at("stashes").elements.at(0).members.at("spilled_bytes").number, 18U);
    EXPECT_EQ(members.at("left_out").members.at("stashes").number, 19U);
    EXPECT_EQ(members.at("threads").elements.at(0).members.at("name").text, "worker");
    EXPECT_EQ(members.at("entries").number, 10U);
    for (const statistics::Field& metric : snapshots::processes::fields) {
        EXPECT_TRUE(members.contains(std::string(metric.name))) << metric.name.view();
    }
}

TEST(ProcessSnapshotToJson, ReportsWhetherSnapshotIsConsistent) {
    ProcessSnapshot snapshot;
    snapshot.consistent = false;
    EXPECT_NE(to_json(snapshot).find("\"consistent\":false,"), std::string::npos);
}

TEST(ProcessSnapshotToJson, EmptySnapshotHasEmptyLists) {
    const Json read = JsonReader::read(to_json(ProcessSnapshot())).value();
    for (const char* list : {"pools", "arenas", "scratches", "devices", "planned", "budgets",
                             "stashes", "scopes", "threads"}) {
        EXPECT_TRUE(read.members.at(list).elements.empty()) << list;
    }
}

}  // namespace
}  // namespace tensorpool
