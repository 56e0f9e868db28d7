// The records of planned arenas, and what other processes read there.

#include "plan/owned_planned_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "plan/planned_table.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/segment/segment_image.hpp"
#include "support/child_process.hpp"

namespace tensorpool::planned {
namespace {

using statistics::PlannedRecord;

using tensorpool::testing::holds_in_child;

/// The segment of this process, as a reader sees it.
statistics::SegmentImage image() {
    statistics::SegmentImage image(statistics::segment().header());
    image.count();
    return image;
}

const PlannedRecord* record_of(std::uint64_t id) {
    for (const PlannedRecord& record : image().records<PlannedRecord>()) {
        if (record.id == id) return &record;
    }
    return nullptr;
}

std::uint64_t left_out() {
    return statistics::segment().header()->region<PlannedRecord>().left_out;
}

std::optional<PlannedArenaStatistics> in_snapshot(std::uint64_t id) {
    for (const PlannedArenaStatistics& one : take_snapshot().planned) {
        if (one.id == id) return one;
    }
    return std::nullopt;
}

/// Takes all records of the segment, so that the next object finds none.
std::vector<std::unique_ptr<OwnedPlannedRecord>> take_all_records() {
    std::vector<std::unique_ptr<OwnedPlannedRecord>> records;
    const std::uint64_t before = left_out();
    do {
        records.push_back(std::make_unique<OwnedPlannedRecord>("filler"));
    } while (left_out() == before);
    records.pop_back();
    return records;
}

TEST(OwnedPlannedRecord, TakesAndReturnsRecordOfSegment) {
    std::uint64_t id = 0;
    {
        OwnedPlannedRecord owned("step");
        id = owned.id();
        owned.totals().count_served(100);
        owned.set_state(PlannedArenaStatistics::State::serving);
        const PlannedRecord* const record = record_of(id);
        ASSERT_NE(record, nullptr);
        EXPECT_EQ(record->totals.served, 1U);
        EXPECT_EQ(record->totals.served_bytes, 100U);
        EXPECT_EQ(record->state, 2U);
        EXPECT_STREQ(owned.statistics().name, "step");
    }
    EXPECT_EQ(record_of(id), nullptr);
}

TEST(OwnedPlannedRecord, LongNamesAreTruncated) {
    EXPECT_STREQ(OwnedPlannedRecord(std::string(500, 'n')).statistics().name,
                 std::string(47, 'n').c_str());
    EXPECT_STREQ(OwnedPlannedRecord("").statistics().name, "");
}

TEST(OwnedPlannedRecord, IsInSnapshotsForItsLifetime) {
    auto record = std::make_unique<OwnedPlannedRecord>("step");
    const std::uint64_t id = record->id();
    record->totals().lower_bound_bytes = 4096;
    ASSERT_TRUE(in_snapshot(id).has_value());
    EXPECT_EQ(in_snapshot(id)->lower_bound_bytes, 4096U);
    record.reset();
    EXPECT_FALSE(in_snapshot(id).has_value());
}

TEST(OwnedPlannedRecord, WithoutRecordIsSummedUnderOther) {
    const OwnedPlannedRecord first("first");  // creates the segment
    const auto fillers = take_all_records();
    const PlannedRecord& other = *statistics::segment().other<PlannedRecord>();
    const std::uint64_t served = other.totals.served;
    {
        OwnedPlannedRecord apart("apart");
        EXPECT_EQ(left_out(), 1U);
        EXPECT_NE(apart.id(), 0U);
        apart.totals().count_served(100);
        apart.totals().capacity_bytes = 4096;
        EXPECT_EQ(other.totals.served, served) << "not published yet";
        apart.note_iteration();
        apart.note_iteration();
        EXPECT_EQ(other.totals.served, served + 1);
        EXPECT_EQ(other.totals.capacity_bytes, 4096U);
        EXPECT_EQ(apart.statistics().in_use_bytes, 100U) << "the process itself sees it";
        apart.totals().capacity_bytes = 0;
        apart.note_capacity();
        EXPECT_EQ(other.totals.capacity_bytes, 0U);
    }
    EXPECT_EQ(other.totals.served, served);
    EXPECT_EQ(left_out(), 0U);
}

TEST(OwnedPlannedRecord, ForkedChildHasOwnCopy) {
    OwnedPlannedRecord record("step");
    record.totals().count_served(100);
    EXPECT_TRUE(holds_in_child([&] {
        record.totals().count_served(28);
        return record_of(record.id())->totals.served_bytes == 128;
    }));
    EXPECT_EQ(record.totals().served_bytes, 100U);
}

}  // namespace
}  // namespace tensorpool::planned
