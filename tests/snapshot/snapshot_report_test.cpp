#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;
using Kind = ArenaStatistics::Kind;

ArenaStatistics arena_named(const char* name, Kind kind = Kind::growing) {
    ArenaStatistics statistics;
    std::strncpy(statistics.name, name, sizeof statistics.name - 1);
    statistics.kind = kind;
    return statistics;
}

/// Returns statistics in which every value is different.
ArenaStatistics distinct_statistics() {
    ArenaStatistics statistics = arena_named("steps");
    std::uint64_t next = 1000;
    // All fields after the kind are words.
    auto* const words = reinterpret_cast<std::uint64_t*>(&statistics.id);
    const auto* const end = reinterpret_cast<std::uint64_t*>(&statistics + 1);
    for (std::uint64_t* word = words; word != end; ++word) *word = next++;
    return statistics;
}

PoolStatistics pool_named(const char* name) {
    PoolStatistics statistics;
    std::strncpy(statistics.name, name, sizeof statistics.name - 1);
    return statistics;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

TEST(ArenaStatistics, AreInitiallyZero) {
    const ArenaStatistics statistics;
    EXPECT_EQ(statistics.version, ArenaStatistics::current_version);
    EXPECT_STREQ(statistics.name, "");
    EXPECT_EQ(statistics.kind, Kind::growing);
    const auto* const words = &statistics.id;
    const auto* const end = reinterpret_cast<const std::uint64_t*>(&statistics + 1);
    EXPECT_TRUE(std::all_of(words, end, [](std::uint64_t word) { return word == 0; }));
}

TEST(ArenaToJson, ContainsEveryMetricOnce) {
    const ArenaStatistics statistics = distinct_statistics();
    const std::optional<Json> read = JsonReader::read(to_json(statistics));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->members.at("version").number, ArenaStatistics::current_version);
    EXPECT_EQ(read->members.at("name").text, "steps");
    EXPECT_EQ(read->members.at("kind").text, "growing");
    EXPECT_EQ(read->members.at("used_bytes").number, statistics.used_bytes);
    EXPECT_EQ(read->members.at("peak_capacity_bytes").number, statistics.peak_capacity_bytes);
    EXPECT_EQ(read->members.at("refusals").number, statistics.refusals);

    std::set<std::uint64_t> shown;
    for (const auto& [name, value] : read->members) {
        if (value.number >= 1000) shown.insert(value.number);
    }
    const std::uint64_t words = (sizeof statistics - offsetof(ArenaStatistics, id)) / 8;
    EXPECT_EQ(shown.size(), words);
    EXPECT_EQ(read->members.size(), words + 3) << "version, name, kind";
}

TEST(ArenaToJson, KindIsAWord) {
    const auto kind_of = [](Kind kind) {
        return JsonReader::read(to_json(arena_named("", kind)))->members.at("kind").text;
    };
    EXPECT_EQ(kind_of(Kind::growing), "growing");
    EXPECT_EQ(kind_of(Kind::buffer), "buffer");
    EXPECT_EQ(kind_of(Kind::measuring), "measuring");
    EXPECT_EQ(kind_of(Kind::scratch), "scratch");
}

TEST(ArenaToText, ShowsValuesWithUnits) {
    ArenaStatistics statistics = arena_named("steps");
    statistics.used_bytes = 3 << 20;
    statistics.peak_used_bytes = 7 << 20;
    statistics.capacity_bytes = 4 << 20;
    statistics.peak_capacity_bytes = 8 << 20;
    statistics.reserved_bytes = std::uint64_t{1} << 40;
    statistics.limit_bytes = 64 << 20;
    statistics.allocations = 12;
    statistics.releases = 3;
    statistics.growths = 5;
    statistics.grown_bytes = 20 << 20;
    statistics.give_backs = 2;
    statistics.given_back_bytes = 16 << 20;
    statistics.refusals = 17;
    EXPECT_EQ(to_text(statistics),
              "tensorpool: arenas: 'steps', growing\n"
              "  allocations         12\n"
              "  releases            3\n"
              "  used_bytes          3 MiB\n"
              "  peak_used_bytes     7 MiB\n"
              "  capacity_bytes      4 MiB\n"
              "  peak_capacity_bytes 8 MiB\n"
              "  reserved_bytes      1 TiB\n"
              "  limit_bytes         64 MiB\n"
              "  growths             5\n"
              "  grown_bytes         20 MiB\n"
              "  give_backs          2\n"
              "  given_back_bytes    16 MiB\n"
              "  refusals            17\n");
}

TEST(ArenaToText, HeadlineNamesKind) {
    const auto headline_of = [](Kind kind) {
        return lines_of(to_text(arena_named("a", kind))).at(0);
    };
    EXPECT_EQ(headline_of(Kind::growing), "tensorpool: arenas: 'a', growing");
    EXPECT_EQ(headline_of(Kind::buffer), "tensorpool: arenas: 'a', buffer");
    EXPECT_EQ(headline_of(Kind::measuring), "tensorpool: arenas: 'a', measuring");
    EXPECT_EQ(headline_of(Kind::scratch), "tensorpool: arenas: 'a', scratch");
}

TEST(ArenaToText, UnusedArenaShowsNeitherLimitNorRefusals) {
    EXPECT_EQ(to_text(ArenaStatistics()), "tensorpool: arenas: '', growing\n");
}

TEST(SnapshotToJson, EmptySnapshotHasEmptyGroups) {
    EXPECT_NE(to_json(Snapshot())
                  .find("\"pools\":[],\"arenas\":[],\"scratches\":[],\"devices\":[],"
                        "\"planned\":[],\"budgets\":[],\"stashes\":[],\"scopes\":[],"
                        "\"device_streams\":[],\"threads\":[]"),
              std::string::npos)
        << to_json(Snapshot());
}

TEST(SnapshotToJson, ContainsJsonOfEachObject) {
    Snapshot snapshot;
    snapshot.pools = {pool_named("one"), pool_named("two")};
    snapshot.arenas = {distinct_statistics()};
    snapshot.scratches = {arena_named("s", Kind::scratch), arena_named("t", Kind::scratch)};
    snapshot.devices = {DeviceStatistics{.name = "gpu", .slabs = 4}};
    snapshot.planned = {PlannedArenaStatistics{.name = "step", .buffers = 5}};
    snapshot.budgets = {BudgetStatistics{.name = "process", .id = 6}};
    snapshot.stashes = {StashStatistics{.name = "weights", .id = 7}};
    snapshot.scopes = {ScopeStatistics{.name = "forward", .calls = 3}};
    const std::string json = to_json(snapshot);
    for (const std::string& part :
         {"\"pools\":[" + to_json(snapshot.pools[0]) + ',' + to_json(snapshot.pools[1]) + ']',
          "\"arenas\":[" + to_json(snapshot.arenas[0]) + ']',
          "\"scratches\":[" + to_json(snapshot.scratches[0]) + ',' +
              to_json(snapshot.scratches[1]) + ']',
          "\"devices\":[" + to_json(snapshot.devices[0]) + ']',
          "\"planned\":[" + to_json(snapshot.planned[0]) + ']',
          "\"budgets\":[" + to_json(snapshot.budgets[0]) + ']',
          "\"stashes\":[" + to_json(snapshot.stashes[0]) + ']',
          "\"scopes\":[" + to_json(snapshot.scopes[0]) + ']'}) {
        EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
    }
}

TEST(SnapshotToText, ShowsScopesAsTable) {
    Snapshot snapshot;
    snapshot.scopes = {ScopeStatistics{.name = "fall", .calls = 3, .deallocated_bytes = 2048}};
    EXPECT_EQ(to_text(snapshot),
              "tensorpool: scopes; peaks may lag by what magazines hold\n"
              "  scope        peak calls open growth allocs bytes/call misorder\n"
              "  fall          0 B     3    0 -2 KiB      0        0 B        0\n");
}

TEST(SnapshotToText, ShowsBudgetsAsIndentedTree) {
    Snapshot snapshot;
    snapshot.budgets = {
        {.name = "process", .id = 3, .soft_bytes = 4096, .in_use_bytes = 1024, .peak_bytes = 2048},
        {.name = "cache",
         .id = 5,
         .parent = 3,
         .hard_bytes = 2048,
         .in_use_bytes = 1024,
         .peak_bytes = 2048,
         .refusals = 4,
         .reclaims = 2,
         .reclaimed_bytes = 512},
        {.name = "free", .id = 6}};
    EXPECT_EQ(to_text(snapshot),
              "tensorpool: budgets; the share is that of the hard limit, or else of the soft one\n"
              "  budget       in use  hard  share  soft  peak refused asked reclaimed\n"
              "  process       1 KiB  none 25.0 % 4 KiB 2 KiB       0     0       0 B\n"
              "    cache       1 KiB 2 KiB 50.0 %  none 2 KiB       4     2     512 B\n"
              "  free            0 B  none      -  none   0 B       0     0       0 B\n");
}

TEST(SnapshotToText, EmptySnapshotIsEmptyText) {
    EXPECT_EQ(to_text(Snapshot()), "");
}

TEST(SnapshotToText, ContainsTextsOfPoolsDevicesAndPlannedArenas) {
    Snapshot snapshot;
    snapshot.pools = {pool_named("one"), pool_named("two")};
    snapshot.devices = {DeviceStatistics{.name = "gpu"}};
    snapshot.planned = {PlannedArenaStatistics{.name = "step"}};
    EXPECT_EQ(to_text(snapshot), to_text(snapshot.pools[0]) + to_text(snapshot.pools[1]) +
                                     to_text(snapshot.devices[0]) + to_text(snapshot.planned[0]));
}

TEST(SnapshotToText, HasLineForEachArenaAndScratch) {
    Snapshot snapshot;
    snapshot.arenas = {arena_named("steps"), arena_named("weights")};
    ArenaStatistics& weights = snapshot.arenas.back();
    weights.used_bytes = 3 << 20;
    weights.peak_used_bytes = 5 << 20;
    weights.capacity_bytes = 8 << 20;
    weights.reserved_bytes = std::uint64_t{1} << 40;
    weights.allocations = 1234;
    weights.growths = 2;
    weights.give_backs = 1;
    weights.refusals = 9;
    snapshot.scratches = {arena_named("main", Kind::scratch)};
    EXPECT_EQ(to_text(snapshot),
              "tensorpool: arenas\n"
              "  name         kind    in use capacity  peak limit refused allocs growths thread\n"
              "  steps        growing    0 B      0 B   0 B  none       0      0       0      0\n"
              "  weights      growing  3 MiB    8 MiB 5 MiB  none       9   1234       2      0\n"
              "tensorpool: scratches\n"
              "  name         kind    in use capacity peak limit refused allocs growths thread\n"
              "  main         scratch    0 B      0 B  0 B  none       0      0       0      0\n");
}

TEST(SnapshotToText, TableWidthCountsColumnsNotBytes) {
    Snapshot snapshot;
    snapshot.arenas = {arena_named("größere Gewichte"), arena_named("smaller weights!")};
    const std::vector<std::string> lines = lines_of(to_text(snapshot));
    EXPECT_EQ(lines.at(2).find("0 B"), lines.at(3).find("0 B") + 2)
        << "two characters of two bytes";
    EXPECT_EQ(lines.at(1).size(), lines.at(3).size());
}

TEST(SnapshotToText, LinesOfLargestValuesFitAHundredColumns) {
    Snapshot snapshot;
    snapshot.arenas = {distinct_statistics()};
    snapshot.arenas[0].used_bytes = snapshot.arenas[0].reserved_bytes = UINT64_MAX;
    for (const std::string& line : lines_of(to_text(snapshot))) EXPECT_LE(line.size(), 100U);
}

TEST(SnapshotToText, ShowsWhatRests) {
    Snapshot snapshot;
    snapshot.stashes = {{.name = "kv-cache",
                         .kind = StashStatistics::Kind::map,
                         .id = 3,
                         .tensors = 12,
                         .memory_bytes = 4096,
                         .stashed_bytes = 8192,
                         .compressed_bytes = 1024,
                         .spilled_bytes = 2048,
                         .misses = 7,
                         .restores = 6,
                         .stash_ns = 2'500'000,
                         .restore_ns = 250'000},
                        {.name = "weights", .id = 4}};
    EXPECT_EQ(to_text(snapshot),
              "tensorpool: at rest; the ratio is that of compressed and spilled bytes to the size\n"
              "  at rest      kind    count in mem resting takes  ratio misses in files restores "
              "failed stash s back s budget\n"
              "  kv-cache     map        12  4 KiB   8 KiB 3 KiB 37.5 %      7    2 KiB        6   "
              "   0    0.00   0.00 none\n"
              "  weights      stashes     0    0 B     0 B   0 B      -      0      0 B        0   "
              "   0    0.00   0.00 none\n");
}

}  // namespace
}  // namespace tensorpool
