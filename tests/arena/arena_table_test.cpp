#include "statistics/records/record_values.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "arena/arena_table.hpp"
#include "statistics/segment/owned_record.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::statistics {
namespace {

using Kind = ArenaStatistics::Kind;

ArenaRecord& fill(ArenaRecord& record, Kind kind) {
    record.id = 7;
    store_name(record.name, "steps");
    record.kind = static_cast<std::uint64_t>(kind);
    record.totals.capacity_bytes = 8192;
    record.totals.reserved_bytes = 65536;
    record.totals.limit_bytes = 10'000;
    record.words.used = 4096;
    return record;
}

TEST(UntouchedBytesOfArenas, AreChargedAndNeverTouched) {
    const std::size_t before = sum_of("untouched_bytes");
    const auto record_of = [](std::size_t charged) {
        return OwnedRecord<ArenaRecord>("steps", [charged](ArenaRecord& record) {
            record.kind = static_cast<std::uint64_t>(Kind::growing);
            record.totals.limit_bytes = 10'000;
            record.totals.capacity_bytes = 8192;
            record.totals.peak_used_bytes = 5000;
            record.totals.charged_bytes = charged;
        });
    };
    const auto charged = record_of(8192);
    const auto not_charged = record_of(0);
    EXPECT_EQ(sum_of("untouched_bytes"), before + 8192 - 5000);
    charged->totals.touched_bytes = 6000;
    EXPECT_EQ(sum_of("untouched_bytes"), before + 8192 - 6000);
    charged->totals.peak_used_bytes = 9000;
    EXPECT_EQ(sum_of("untouched_bytes"), before);
}

TEST(StatisticsOfArena, PeakIsNeverBelowTheBytesInUse) {
    ArenaRecord record = {};
    EXPECT_EQ(statistics_of(fill(record, Kind::buffer)).peak_used_bytes, 4096U);
}

TEST(StatisticsOfArena, IgnoreBitsAboveOffset) {
    ArenaRecord record = {};
    fill(record, Kind::growing).words.used = 4096 | ~used_mask;
    EXPECT_EQ(statistics_of(record).used_bytes, 4096U);
}

TEST(StatisticsOfArena, PendingClaimsAreNotInUse) {
    ArenaRecord record = {};
    fill(record, Kind::growing).words.used = std::uint64_t{1} << 40;
    EXPECT_EQ(statistics_of(record).used_bytes, 8192U);
}

TEST(StatisticsOfArena, CapacityOfGrowingArenaIsBoundedByLimit) {
    ArenaRecord record = {};
    fill(record, Kind::growing).totals.limit_bytes = 5000;
    EXPECT_EQ(statistics_of(record).capacity_bytes, 5000U);
    record.id = 0;
    record.totals.limit_bytes = 0;
    EXPECT_EQ(statistics_of(record).capacity_bytes, 8192U) << "some of its arenas have no limit";
    EXPECT_EQ(statistics_of(record).used_bytes, 4096U);
}

TEST(StatisticsOfArena, MeasuringArenaMayExceedCapacity) {
    ArenaRecord record = {};
    fill(record, Kind::measuring).totals.capacity_bytes = 0;
    EXPECT_EQ(statistics_of(record).used_bytes, 4096U);
}

TEST(StatisticsOfScratch, PeakIsMaximumOfAllPeaks) {
    ArenaRecord record = {};
    fill(record, Kind::scratch).thread = 42;
    record.words.high = 6000;
    EXPECT_EQ(statistics_of(record).peak_used_bytes, 6000U);
    record.totals.peak_used_bytes = 7000;
    EXPECT_EQ(statistics_of(record).peak_used_bytes, 7000U);
    EXPECT_EQ(statistics_of(record).thread, 42U);
    EXPECT_EQ(statistics_of(record).reserved_bytes, 8192U) << "it reserves what it holds";
}

TEST(StatisticsOfArena, OverwrittenRecordGivesValidKind) {
    ArenaRecord record = {};
    auto* const bytes = reinterpret_cast<std::byte*>(&record);
    for (std::size_t i = 0; i < sizeof record; ++i) bytes[i] = std::byte{0xFF};
    const ArenaStatistics statistics = statistics_of(record);
    EXPECT_EQ(statistics.kind, Kind::scratch);
    EXPECT_EQ(statistics.name[sizeof statistics.name - 1], '\0');
}

TEST(StatisticsOfArena, SumAllocationsOfAllThreads) {
    ArenaRecord record = {};
    fill(record, Kind::growing).words.releases = 5;
    std::uint64_t sum = 0;
    for (detail::Counter& allocations : record.words.allocations) sum += (allocations = 3 + sum);
    const ArenaStatistics statistics = statistics_of(record);
    EXPECT_EQ(statistics.allocations, sum);
    EXPECT_EQ(statistics.releases, 5U);
}

}  // namespace
}  // namespace tensorpool::statistics
