#include "explain/explanation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

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
    pool.id = 7;
    pool.capacity_bytes = 100 * mib;
    pool.retain_bytes = UINT64_MAX;
    pool.retain_ms = 10'000;
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
    const Row pages = row_of(explanation, "pool 'mine': free pages");
    EXPECT_EQ(pages.bytes, 20 * mib);
    EXPECT_EQ(pages.back_bytes, 20 * mib);
    EXPECT_EQ(pages.why, "retention period of 10 s");
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
    EXPECT_EQ(row_of(explanation, "pool 'mine': free pages").bytes, 10 * mib);
}

TEST(Explanation, MoreThanThePoolsKnowHasARowOfItsOwn) {
    const Explanation explanation = explain(snapshot(), {mapping(begin, 100 * mib)});
    EXPECT_EQ(row_of(explanation, "pools: pages that the system filled, and calls under way").bytes,
              10 * mib);
}

TEST(Explanation, NamesWhatKeepsFreeMemory) {
    ProcessSnapshot made = snapshot();
    made.pools[0].retain_bytes = 64 * mib;
    made.pools[0].retain_ms = 1500;
    made.pools[0].prepared_bytes = 78 * mib;
    made.pools[0].large.parked_bytes = 2 * mib;
    made.threads = {{.thread = 1, .pool = 7, .parked_bytes = mib},
                    {.thread = 2, .pool = 7, .parked_bytes = mib},
                    {.thread = 3, .pool = 7},
                    {.thread = 1, .pool = 8, .parked_bytes = mib}};
    const Explanation explanation = explain(made, {mapping(begin, 92 * mib)});
    const Row prepared = row_of(explanation, "pool 'mine': free pages that `reserve` prepared");
    EXPECT_EQ(prepared.bytes, 8 * mib);
    EXPECT_EQ(prepared.back_bytes, 8 * mib);
    const Row pages = row_of(explanation, "pool 'mine': free pages");
    EXPECT_EQ(pages.bytes, 12 * mib);
    EXPECT_EQ(pages.why, "retention period of 1500 ms, limit 64.0 MiB");
    const Row parked = row_of(explanation, "pool 'mine': free blocks parked by threads");
    EXPECT_EQ(parked.bytes, 2 * mib);
    EXPECT_EQ(parked.why, "for the next requests of 2 threads");
}

TEST(Explanation, SmallBlocksComeBackWhereTheirPagesAreFree) {
    ProcessSnapshot made = snapshot();
    BucketStatistics& bucket = made.pools[0].buckets[0];
    bucket.block_bytes = 64;
    bucket.in_use_bytes = 8 * mib;
    bucket.parked_bytes = mib;
    bucket.depot_bytes = mib;
    bucket.capacity_bytes = 32 * mib;
    made.pools[0].trimmable_span_bytes = 10 * mib;
    made.pools[0].untouched_span_bytes = 2 * mib;
    const Explanation explanation = explain(made, {mapping(begin, 112 * mib)});
    const Row whole = row_of(explanation, "pool 'mine': free small blocks on pages of their own");
    EXPECT_EQ(whole.bytes, 10 * mib);
    EXPECT_EQ(whole.back_bytes, 10 * mib);
    const Row pinned = row_of(explanation, "pool 'mine': free small blocks beside blocks in use");
    EXPECT_EQ(pinned.bytes, 10 * mib) << "without what takes no memory";
    EXPECT_EQ(pinned.back_bytes, 0u);
    const Row depot = row_of(explanation, "pool 'mine': free small blocks in depots");
    EXPECT_EQ(depot.bytes, mib);
    EXPECT_LT(depot.back_bytes, mib / 100) << "63 neighbours, of which a third is in use";
}

TEST(Explanation, ParkedBlocksComeBackIfNoneOfTheirSizeIsInUse) {
    ProcessSnapshot made = snapshot();
    made.pools[0].buckets[0] = {.block_bytes = 64, .parked_bytes = mib, .capacity_bytes = mib};
    const Explanation explanation = explain(made, {mapping(begin, 91 * mib)});
    const Row row = row_of(explanation, "pool 'mine': free blocks parked by threads");
    EXPECT_EQ(row.bytes, mib);
    EXPECT_EQ(row.back_bytes, mib);
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
    EXPECT_EQ(row_of(explanation, "other mappings").bytes, 19 * mib);
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
    made.pools[0].buckets[0].block_bytes = 64;
    made.pools[0].buckets[0].capacity_bytes = 8 * mib;
    made.pools[0].buckets[0].depot_bytes = made.pools[0].quarantined_bytes = 8 * mib;
    const Explanation explanation = explain(made, {mapping(begin, 98 * mib)});
    EXPECT_EQ(row_of(explanation, "pool 'mine': blocks in use").bytes, 45 * mib);
    EXPECT_EQ(
        row_of(explanation, "pool 'mine': freed blocks in the quarantine, or lost by a fork").bytes,
        8 * mib);
}

TEST(Explanation, NamesTheMemoryOfPythonAndMallocInAnonymousMappings) {
    const Mapping chunk{
        .begin = 0x10000, .end = 0x20000, .access = "rw-p", .resident_bytes = 0x8000};
    const Mapping arenas = mapping(8 * begin, 50 * mib);
    const Mapping python = mapping(9 * begin, mib, "/usr/bin/python3.11");
    const ReadWord read_word = [](std::uint64_t address) {
        return address == 0x10008 ? std::uint64_t{0x10002} : 0;
    };
    const Explanation explanation = explain(snapshot(), {chunk, arenas, python}, read_word);
    EXPECT_EQ(sum_of(explanation), 51 * mib + 0x8000);
    EXPECT_EQ(row_of(explanation, "large blocks of the C library's malloc").bytes, 0x8000u);
    EXPECT_EQ(row_of(explanation, "records of tensorpool").bytes, mib);
    EXPECT_EQ(row_of(explanation, "small objects of Python, by the size of their mappings").bytes,
              49 * mib);
}

TEST(ExplanationText, ShowsTheLargestPartsFirstAndWhatShrinksThem) {
    const Explanation explanation = explain(snapshot(), {mapping(begin, 90 * mib)});
    const std::string text = to_text(explanation, Sizes::iec);
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line, "process 4711 (train): 90.0 MiB resident");
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with("   bytes  part can shrink what ")) << line;
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with("45.0 MiB 50.0%            pool 'mine': blocks in use")) << line;
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with("20.0 MiB 22.2%   20.0 MiB pool 'mine': free pages ")) << line;
    EXPECT_TRUE(line.ends_with("retention period of 10 s tensorpool trim --pid 4711")) << line;
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
