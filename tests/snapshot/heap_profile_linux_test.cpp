#include "snapshot/segment_snapshot.hpp"

#include <gtest/gtest.h>

#include "statistics/fake_segment_linux.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {
namespace {

using namespace read;
using namespace snapshots;

using tensorpool::testing::FakeSegment;

class HeapProfileReader : public ::testing::Test {
protected:
    SiteRecord& add_site(std::uint64_t allocated, std::uint64_t freed) {
        SiteRecord& site = fake_.add_site(allocated);
        site.frame_count = 0;
        site.freed_bytes = freed;
        site.allocated_blocks = 2 * SiteRecord::block_units;
        return site;
    }
    HeapProfile read() {
        SegmentView view(fake_.open());
        EXPECT_FALSE(view.open());
        HeapProfile profile;
        profile.time_unix_ns = 99;
        EXPECT_FALSE(read_heap_profile(view, profile));
        return profile;
    }

    FakeSegment fake_;
};

TEST_F(HeapProfileReader, ReadsSitesAndTheirFrames) {
    fake_.add_frame_name("/lib/a.so");
    fake_.add_frame_name("python:f@/x.py");
    SiteRecord& site = add_site(1000, 400);
    site.frame_count = 3;
    site.frames[0] = std::uint64_t{1} << 48 | 0x10;
    site.frames[1] = std::uint64_t{2} << 48 | 7;
    site.frames[2] = 0x1234;
    site.lifetimes[3] = SiteRecord::block_units / 2;
    fake_.header().profile.interval = 4096;
    const HeapProfile profile = read();
    EXPECT_EQ(profile.interval, 4096U);
    ASSERT_EQ(profile.sites.size(), 1U);
    EXPECT_EQ(profile.sites[0].live_bytes, 600U);
    EXPECT_EQ(profile.sites[0].live_blocks, 2);
    EXPECT_EQ(profile.sites[0].lifetimes[3], 0.5);
    ASSERT_EQ(profile.sites[0].stack.size(), 3U);
    const auto frame = [&](std::size_t i) { return profile.frames.at(profile.sites[0].stack[i]); };
    EXPECT_EQ(frame(0).module, "/lib/a.so");
    EXPECT_EQ(frame(0).offset, 0x10U);
    EXPECT_EQ(frame(1).module, "python:f@/x.py");
    EXPECT_EQ(frame(1).offset, 7U);
    EXPECT_EQ(frame(2).module, "");
    EXPECT_EQ(frame(2).offset, 0x1234U);
}

TEST_F(HeapProfileReader, WhileUseRisesThePeakIsNow) {
    SiteRecord& site = add_site(1000, 0);
    site.peak_bytes = 300;
    fake_.header().profile.peak_bytes = 300;
    fake_.header().profile.peak_unix_ns = 5;
    HeapProfile profile = read();
    EXPECT_EQ(profile.peak_bytes, 1000U);
    EXPECT_EQ(profile.peak_unix_ns, 99U);
    EXPECT_EQ(profile.sites[0].peak_bytes, 1000U);
    site.freed_bytes = 900;
    profile = read();
    EXPECT_EQ(profile.peak_bytes, 300U);
    EXPECT_EQ(profile.peak_unix_ns, 5U);
    EXPECT_EQ(profile.sites[0].peak_bytes, 300U);
}

TEST_F(HeapProfileReader, EstimatesAreAtMostWhatPoolsCounted) {
    add_site(3000, 1000);
    add_site(9000, 3000);
    PoolRecord& pool = fake_.add_pool("mine", 7);
    pool.totals.peak_held_bytes = 10'000;
    pool.shared.large.allocated_bytes = 5000;
    pool.shared.large.deallocated_bytes = 1000;
    pool.shared.large.requested_bytes = 5000;
    fake_.header().profile.requested_bytes_of_ended_pools = 1000;
    fake_.header().profile.distances = 4000;
    const HeapProfile profile = read();
    ASSERT_EQ(profile.sites.size(), 2U);
    EXPECT_EQ(profile.sites[0].live_bytes, 1000U);
    EXPECT_EQ(profile.sites[1].live_bytes, 3000U);
    EXPECT_EQ(profile.sites[0].live_blocks, 1);
    EXPECT_EQ(profile.sites[0].allocated_bytes, 1000U + 500);
    EXPECT_EQ(profile.sites[1].allocated_bytes, 3000U + 1500);
    EXPECT_EQ(profile.peak_bytes, 4000U);
    EXPECT_EQ(profile.mean_distance, 2000U);
}

TEST_F(HeapProfileReader, PoolsWithoutARecordSetNoLimit) {
    add_site(3000, 1000);
    (void)fake_.add_pool("mine", 7);
    fake_.header().region<PoolRecord>().left_out = 1;
    EXPECT_EQ(read().sites.at(0).live_bytes, 2000U);
}

TEST_F(HeapProfileReader, OverwrittenCountsAndNamesAreHarmless) {
    SiteRecord& site = add_site(1000, 5000);
    site.frame_count = UINT64_MAX;
    site.frames[0] = UINT64_MAX;
    fake_.header().region<SiteRecord>().used = count_of<SiteRecord>;
    fake_.header().region<FrameNameRecord>().used = count_of<FrameNameRecord>;
    const HeapProfile profile = read();
    ASSERT_EQ(profile.sites.size(), 1U);
    EXPECT_EQ(profile.sites[0].live_bytes, 0U);
    EXPECT_EQ(profile.sites[0].stack.size(), SiteRecord::max_frames);
}

TEST_F(HeapProfileReader, SitesWithoutSamplesAreLeftOut) {
    add_site(0, 0).samples = 0;
    EXPECT_TRUE(read().sites.empty());
}

}  // namespace
}  // namespace tensorpool::statistics
