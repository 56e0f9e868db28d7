#include "read/segment_view.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "arena/arena_table.hpp"
#include "device/device_table.hpp"
#include "plan/planned_table.hpp"
#include "statistics/fake_segment_linux.hpp"
#include "statistics/scopes/scope_table.hpp"

namespace tensorpool::statistics {
namespace {

using namespace read;

using testing::FakeSegment;
using testing::put;
using Sealed = FakeSegment::Sealed;

class SegmentViewOf : public ::testing::TestWithParam<Sealed> {
protected:
    FakeSegment segment{GetParam()};

    /// Returns why a view of the segment cannot be opened; "" if it can.
    std::string problem() {
        SegmentView view(segment.open());
        const auto problem = view.open();
        return problem ? problem->what : "";
    }
    AttachFailure failure() {
        SegmentView view(segment.open());
        return view.open().value().failure;
    }
};
INSTANTIATE_TEST_SUITE_P(Sealed, SegmentViewOf, ::testing::Values(Sealed::yes));
INSTANTIATE_TEST_SUITE_P(Unsealed, SegmentViewOf, ::testing::Values(Sealed::no));

TEST_P(SegmentViewOf, ValidSegmentShowsRecordsInUse) {
    segment.add_pool("images", 4);
    SegmentView view(segment.open());
    ASSERT_FALSE(view.open());
    ASSERT_FALSE(view.refresh());
    EXPECT_TRUE(view.is_steady());
    EXPECT_EQ(view.later().records<PoolRecord>().size(), 2U);
    EXPECT_EQ(view.earlier().records<PoolRecord>()[1].id.load(), 4U);
    EXPECT_EQ(view.later().records<CountersRecord>().size(), 0U);
}

TEST_P(SegmentViewOf, RefreshShowsChanges) {
    SegmentView view(segment.open());
    ASSERT_FALSE(view.open());
    ASSERT_FALSE(view.refresh());
    segment.add_counters(4, 1000);
    ASSERT_FALSE(view.refresh());
    ASSERT_EQ(view.later().records<CountersRecord>().size(), 1U);
    EXPECT_EQ(view.later().records<CountersRecord>()[0].thread.load(), 1000U);
}

TEST_P(SegmentViewOf, ConcurrentChangeIsNotSteady) {
    SegmentView view(segment.open());
    ASSERT_FALSE(view.open());
    ASSERT_FALSE(view.refresh());
    put(segment.header().epoch, 2);
    EXPECT_FALSE(view.is_steady());
    ASSERT_FALSE(view.refresh());
    EXPECT_TRUE(view.is_steady());
    put(segment.header().epoch, 3);
    ASSERT_FALSE(view.refresh());
    EXPECT_FALSE(view.is_steady()) << "a change is in progress";
}

TEST_P(SegmentViewOf, ReportsOtherVersion) {
    put(segment.header().version, segment_version + 1);
    EXPECT_EQ(failure(), AttachFailure::other_version);
    EXPECT_NE(problem().find("version " + std::to_string(segment_version + 1)), std::string::npos)
        << problem();
}

// The layout of tensorpool before it supported devices.
TEST_P(SegmentViewOf, RejectsFirstVersion) {
    put(segment.header().version, 1);
    EXPECT_EQ(failure(), AttachFailure::other_version);
    EXPECT_NE(problem().find("version 1, this reader version " + std::to_string(segment_version)),
              std::string::npos)
        << problem();
}

TEST_P(SegmentViewOf, FileWithOtherContentIsDamaged) {
    std::memset(segment.base(), 'x', 8192);
    EXPECT_EQ(failure(), AttachFailure::damaged);
}

TEST_P(SegmentViewOf, UninitializedSegmentIsNoSegment) {
    put(segment.header().magic, 0);
    EXPECT_EQ(failure(), AttachFailure::no_segment);
}

// A process under a small limit of addresses has room for fewer sets of counters.
TEST_P(SegmentViewOf, MayHaveFewerCountersButNotMoreNorFewerThanAreUsed) {
    segment.add_counters(4, 1000);
    Region& region = segment.header().region<CountersRecord>();
    const std::uint64_t right = region.record_count;
    put(region.record_count, right - 1);
    SegmentView view(segment.open());
    ASSERT_FALSE(view.open());
    for (const std::uint64_t wrong : {right + 1, region.used - 1, ~std::uint64_t{0}}) {
        put(region.record_count, wrong);
        EXPECT_EQ(failure(), AttachFailure::damaged) << wrong;
    }
}

TEST_P(SegmentViewOf, EveryLayoutValueIsChecked) {
    SegmentHeader& header = segment.header();
    Counter* const numbers[] = {&header.bytes,
                                &header.header_bytes,
                                &header.region<EntryRecord>().offset,
                                &header.region<EntryRecord>().record_count,
                                &header.region<ScopeRecord>().offset,
                                &header.region<ScopeRecord>().record_bytes,
                                &header.region<PoolRecord>().record_count,
                                &header.region<PoolRecord>().offset,
                                &header.region<ArenaRecord>().record_bytes,
                                &header.region<ArenaRecord>().offset,
                                &header.region<CountersRecord>().record_bytes,
                                &header.region<DeviceRecord>().offset,
                                &header.region<DeviceRecord>().record_count,
                                &header.region<DeviceStreamRecord>().record_bytes,
                                &header.region<DeviceStreamRecord>().offset,
                                &header.region<PlannedRecord>().offset,
                                &header.region<PlannedRecord>().record_count};
    for (Counter* const number : numbers) {
        const std::uint64_t right = number->load();
        for (const std::uint64_t wrong :
             {right + 1, right - 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
            put(*number, wrong);
            EXPECT_EQ(failure(), AttachFailure::damaged);
        }
        put(*number, right);
    }
    EXPECT_EQ(problem(), "");
}

TEST_P(SegmentViewOf, TooManyUsedRecordsAreDamage) {
    put(segment.header().region<CountersRecord>().used, count_of<CountersRecord> + 1);
    EXPECT_EQ(failure(), AttachFailure::damaged);
    put(segment.header().region<CountersRecord>().used, count_of<CountersRecord>);
    put(segment.header().region<DeviceRecord>().used, count_of<DeviceRecord> + 1);
    EXPECT_EQ(failure(), AttachFailure::damaged);
    put(segment.header().region<DeviceRecord>().used, count_of<DeviceRecord>);
    EXPECT_EQ(problem(), "");
}

TEST_P(SegmentViewOf, RefreshDetectsLaterDamage) {
    SegmentView view(segment.open());
    ASSERT_FALSE(view.open());
    ASSERT_FALSE(view.refresh());
    put(segment.header().region<PoolRecord>().used, ~std::uint64_t{0});
    ASSERT_TRUE(view.refresh());
    EXPECT_EQ(view.refresh()->failure, AttachFailure::damaged);
    EXPECT_EQ(view.refresh_timeline()->failure, AttachFailure::damaged);
}

TEST(SegmentView, TruncatedFileIsDamaged) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{4096},
                                    offset_of<ArenaRecord>, segment_bytes - 1}) {
        FakeSegment segment(Sealed::no);
        segment.cut_to(bytes);
        SegmentView view(segment.open());
        EXPECT_EQ(view.open().value().failure, AttachFailure::damaged) << bytes;
    }
}

TEST(SegmentView, TruncationDuringReadGivesProblemAndNoSignal) {
    FakeSegment segment(Sealed::no);
    for (std::uint64_t id = 1; id < 100; ++id) segment.add_pool("p", id);
    SegmentView view(segment.open());
    ASSERT_FALSE(view.open());
    ASSERT_FALSE(view.refresh());
    segment.cut_to(offset_of<PoolRecord> + 100);
    EXPECT_EQ(view.refresh().value().failure, AttachFailure::damaged);
    EXPECT_EQ(view.later().records<PoolRecord>().size(), 100U) << "the copy is kept";
    segment.cut_to(100);
    EXPECT_FALSE(view.is_steady());
    EXPECT_EQ(view.refresh().value().failure, AttachFailure::damaged);
    EXPECT_EQ(view.refresh_timeline().value().failure, AttachFailure::damaged);
}

TEST(SegmentView, MissingFileIsDamaged) {
    SegmentView view{platform::ObservedFile()};
    EXPECT_EQ(view.open().value().failure, AttachFailure::damaged);
}

TEST(SegmentView, CopiesTimelineEntries) {
    FakeSegment segment(Sealed::no);
    put(segment.entry(0).ticket, 2);
    put(segment.entry(1).ticket, 4);
    put(segment.header().entries, 2);
    SegmentView view(segment.open());
    ASSERT_FALSE(view.open());
    ASSERT_FALSE(view.refresh_timeline());
    EXPECT_EQ(view.earlier().timeline()[0].ticket.load(), 2U);
    EXPECT_EQ(view.earlier().timeline()[1].ticket.load(), 4U);
}

}  // namespace
}  // namespace tensorpool::statistics
