#include "explain/explanation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tensorpool::command::explain {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t begin = std::uint64_t{1} << 40;

Mapping mapping(std::uint64_t at, std::uint64_t resident_bytes, const char* path = "") {
    return {.begin = at,
            .end = at + 1024 * mib,
            .access = "rw-p",
            .path = path,
            .resident_bytes = resident_bytes};
}

/// A process with one pool of 100 MiB: 60 in use, 30 free pages, of which 10 were never touched,
/// and 10 of free large blocks.
ProcessSnapshot snapshot() {
    ProcessSnapshot made;
    made.process = 4711;
    made.process_name = "train";
    made.pool_addresses = {begin, 1024 * mib};
    PoolStatistics pool;
    std::snprintf(pool.name, sizeof pool.name, "mine");
    pool.in_use_bytes = 60 * mib;
    pool.requested_bytes = 150;
    pool.allocated_bytes = 200;
    pool.free_bytes = 30 * mib;
    pool.untouched_bytes = 10 * mib;
    pool.large.cached_bytes = 10 * mib;
    pool.record_bytes = mib;
    made.pools.push_back(pool);
    return made;
}

std::uint64_t sum_of(const Explanation& explanation) {
    std::uint64_t sum = 0;
    for (const Row& row : explanation.rows) sum += row.bytes;
    return sum;
}

Row row_of(const Explanation& explanation, const std::string& what) {
    const auto found = std::ranges::find(explanation.rows, what, &Row::what);
    return found == explanation.rows.end() ? Row{} : *found;
}

TEST(Explanation, DividesTheMemoryOfPools) {
    const Explanation explanation = explain(snapshot(), {mapping(begin, 90 * mib)});
    EXPECT_EQ(explanation.resident_bytes, 90 * mib);
    EXPECT_EQ(sum_of(explanation), 90 * mib);
    EXPECT_EQ(row_of(explanation, "pool 'mine': blocks in use").bytes, 45 * mib);
    EXPECT_EQ(row_of(explanation, "pool 'mine': rounding of these blocks, on average").bytes,
              15 * mib);
    const Row pages = row_of(explanation, "pool 'mine': free pages, kept for the retention period");
    EXPECT_EQ(pages.bytes, 20 * mib);
    EXPECT_EQ(pages.back_bytes, 20 * mib);
    EXPECT_EQ(pages.how, "tensorpool trim --pid 4711");
}

TEST(Explanation, BlocksThatWereNotTouchedTakeNoMemory) {
    const Explanation explanation = explain(snapshot(), {mapping(begin, 50 * mib)});
    EXPECT_EQ(sum_of(explanation), 50 * mib);
    EXPECT_EQ(row_of(explanation, "pool 'mine': blocks in use").bytes, 15 * mib);
    EXPECT_EQ(row_of(explanation, "pool 'mine': rounding of these blocks, on average").bytes,
              5 * mib);
}

TEST(Explanation, LessThanWhatIsFreeIsDividedAmongFreeMemory) {
    const Explanation explanation = explain(snapshot(), {mapping(begin, 15 * mib)});
    EXPECT_EQ(sum_of(explanation), 15 * mib);
    EXPECT_EQ(row_of(explanation, "pool 'mine': blocks in use").bytes, 0u);
    EXPECT_EQ(row_of(explanation, "pool 'mine': free pages, kept for the retention period").bytes,
              10 * mib);
}

TEST(Explanation, MoreThanThePoolsKnowHasARowOfItsOwn) {
    const Explanation explanation = explain(snapshot(), {mapping(begin, 100 * mib)});
    EXPECT_EQ(row_of(explanation, "pools: pages that the system filled, and calls under way").bytes,
              10 * mib);
}

TEST(Explanation, SmallBlocksComeBackWhereTheirPagesAreFree) {
    ProcessSnapshot made = snapshot();
    const auto add_bucket = [&](unsigned index, std::uint64_t block_bytes, std::uint64_t in_use) {
        made.pools[0].buckets[index] = {
            .block_bytes = block_bytes, .in_use_bytes = in_use, .capacity_bytes = 16 * mib};
    };
    add_bucket(0, 64, 8 * mib);
    add_bucket(8, 16384, 8 * mib);
    made.pools[0].untouched_span_bytes = 2 * mib;
    const Explanation explanation = explain(made, {mapping(begin, 110 * mib)});
    const Row row = row_of(explanation,
                           "pool 'mine': free small blocks, kept by threads and beside blocks in "
                           "use");
    EXPECT_EQ(row.bytes, 14 * mib);
    EXPECT_EQ(row.back_bytes, 6 * mib) << "those of 16 KiB, without what was given back before";
}

TEST(Explanation, DividesArenasAndOtherAnonymousMemory) {
    ProcessSnapshot made = snapshot();
    ArenaStatistics arena;
    std::snprintf(arena.name, sizeof arena.name, "phases");
    arena.kind = ArenaStatistics::Kind::growing;
    arena.used_bytes = 10 * mib;
    arena.peak_used_bytes = 30 * mib;
    arena.capacity_bytes = 40 * mib;
    made.arenas.push_back(arena);
    const Explanation explanation =
        explain(made, {mapping(8 * begin, 50 * mib), mapping(9 * begin, mib, "/lib/a.so")});
    EXPECT_EQ(sum_of(explanation), 51 * mib);
    EXPECT_EQ(row_of(explanation, "records of tensorpool").bytes, mib);
    EXPECT_EQ(row_of(explanation, "arena 'phases': in use").bytes, 10 * mib);
    const Row kept = row_of(explanation, "arena 'phases': touched before, now unused");
    EXPECT_EQ(kept.bytes, 20 * mib);
    EXPECT_EQ(kept.back_bytes, 20 * mib);
    EXPECT_EQ(kept.how, "Arena::trim in the program");
    EXPECT_EQ(row_of(explanation, "other mappings, such as large blocks of malloc").bytes,
              19 * mib);
    EXPECT_EQ(row_of(explanation, "program, libraries and other files").bytes, mib);
}

TEST(Explanation, DamagedStatisticsChangeRowsButNotTheirSum) {
    ProcessSnapshot made = snapshot();
    PoolStatistics& pool = made.pools[0];
    pool.in_use_bytes = pool.allocated_bytes = pool.free_bytes = pool.quarantined_bytes =
        UINT64_MAX;
    pool.large.cached_bytes = pool.large.parked_bytes = pool.record_bytes = UINT64_MAX;
    for (BucketStatistics& bucket : pool.buckets) bucket.capacity_bytes = UINT64_MAX;
    made.pools.push_back(pool);
    const Explanation explanation =
        explain(made, {mapping(begin, 90 * mib), mapping(8 * begin, 50 * mib)});
    EXPECT_EQ(sum_of(explanation), 140 * mib);
    for (const Row& row : explanation.rows) EXPECT_LE(row.back_bytes, row.bytes);
}

TEST(Explanation, BlocksInTheQuarantineAreNoOtherFreeBlocks) {
    ProcessSnapshot made = snapshot();
    made.pools[0].buckets[0] = {.block_bytes = 64, .capacity_bytes = 8 * mib};
    made.pools[0].depot_bytes = made.pools[0].quarantined_bytes = 8 * mib;
    const Explanation explanation = explain(made, {mapping(begin, 98 * mib)});
    EXPECT_EQ(row_of(explanation, "pool 'mine': blocks in use").bytes, 45 * mib);
    EXPECT_EQ(
        row_of(explanation, "pool 'mine': freed blocks in the quarantine, or lost by a fork").bytes,
        8 * mib);
}

TEST(ExplanationText, ShowsTheLargestPartsFirstAndWhatShrinksThem) {
    const Explanation explanation = explain(snapshot(), {mapping(begin, 90 * mib)});
    EXPECT_EQ(to_text(explanation, Sizes::iec),
              "process 4711 (train): 90.0 MiB resident\n"
              "   bytes  part can shrink what                                                      "
              "       how\n"
              "45.0 MiB 50.0%            pool 'mine': blocks in use\n"
              "20.0 MiB 22.2%   20.0 MiB pool 'mine': free pages, kept for the retention period    "
              "       tensorpool trim --pid 4711\n"
              "15.0 MiB 16.7%            pool 'mine': rounding of these blocks, on average\n"
              "10.0 MiB 11.1%   10.0 MiB pool 'mine': free large blocks, kept by threads and in "
              "the cache tensorpool trim --pid 4711");
}

TEST(ExplanationText, IsOneObjectOfJson) {
    const auto json =
        nlohmann::json::parse(to_json(explain(snapshot(), {mapping(begin, 90 * mib)})));
    EXPECT_EQ(json["resident_bytes"], 90 * mib);
    EXPECT_EQ(json["rows"][0]["what"], "pool 'mine': blocks in use");
    EXPECT_EQ(json["rows"][0]["bytes"], 45 * mib);
}

}  // namespace
}  // namespace tensorpool::command::explain
