#include "watch/profile/profiled_blocks.hpp"

#include <gtest/gtest.h>

#include "statistics/segment/owned_record.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::watch {
namespace {

using statistics::ProfileWords;
using statistics::segment;

constexpr double mean = 512 * 1024;

const ProfileWords& words() {
    return segment().header()->profile;
}

TEST(ProfiledBlocks, SampleOfASmallBlockStandsForManyOthers) {
    ProfiledBlock* const block = profiled_blocks().begin(nullptr, 1024, mean);
    ASSERT_NE(block, nullptr);
    EXPECT_NEAR(static_cast<double>(block->bytes), mean + 512, 10);
    EXPECT_NEAR(static_cast<double>(block->blocks) / SiteRecord::block_units, 512.5, 0.1);
    profiled_blocks().end(*block);
}

TEST(ProfiledBlocks, SampleOfALargeBlockStandsForItself) {
    ProfiledBlock* const block = profiled_blocks().begin(nullptr, std::size_t{64} << 20, mean);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->bytes, std::uint64_t{64} << 20);
    EXPECT_EQ(block->blocks, SiteRecord::block_units);
    profiled_blocks().end(*block);
}

TEST(ProfiledBlocks, OneStackHasOneSite) {
    SiteRecord* first = nullptr;
    for (int i = 0; i < 3; ++i) {
        ProfiledBlock* const block = profiled_blocks().begin(nullptr, 1000, mean);
        ASSERT_NE(block, nullptr);
        if (first == nullptr) first = block->site;
        EXPECT_EQ(block->site, first);
        profiled_blocks().end(*block);
    }
    ProfiledBlock* const other = profiled_blocks().begin(nullptr, 1000, mean);
    EXPECT_NE(other->site, first);
    profiled_blocks().end(*other);
}

/// A pool that holds bytes.
class Holding {
public:
    explicit Holding(std::uint64_t bytes) { record_->totals.hold(bytes); }

private:
    statistics::OwnedRecord<statistics::PoolRecord> record_{"held", [](statistics::PoolRecord&) {}};
};

constexpr std::uint64_t tib = std::uint64_t{1} << 40;

TEST(ProfiledBlocks, PeakIsKeptWhenUseFalls) {
    const Holding pool(3 * tib);
    ProfiledBlock* const first = profiled_blocks().begin(nullptr, tib, mean);
    ProfiledBlock* const second = profiled_blocks().begin(nullptr, tib, mean);
    EXPECT_LT(words().peak_bytes.load(), 2 * tib);
    profiled_blocks().end(*second);
    EXPECT_GE(words().peak_bytes.load(), 2 * tib);
    EXPECT_EQ(second->site->peak_bytes.load(), tib);
    profiled_blocks().end(*first);
    EXPECT_EQ(first->site->peak_bytes.load(), tib);
}

TEST(ProfiledBlocks, PeakIsAtMostWhatPoolsHeldThen) {
    const Holding pool(6 * tib);
    const Holding other(2 * tib);
    ProfiledBlock* const first = profiled_blocks().begin(nullptr, 4 * tib, mean);
    ProfiledBlock* const second = profiled_blocks().begin(nullptr, 12 * tib, mean);
    profiled_blocks().end(*second);
    EXPECT_EQ(words().peak_bytes.load(), 8 * tib);
    EXPECT_EQ(first->site->peak_bytes.load(), 2 * tib);
    EXPECT_EQ(first->site->peak_blocks.load(), SiteRecord::block_units / 2);
    EXPECT_EQ(second->site->peak_bytes.load(), 6 * tib);
    profiled_blocks().end(*first);
    EXPECT_EQ(words().peak_bytes.load(), 8 * tib);
}

TEST(ProfiledBlocks, AddsUpTheDistancesThatWereUsed) {
    const std::uint64_t before = words().distances.load();
    for (const double used : {1000.0, 3000.0}) {
        profiled_blocks().end(*profiled_blocks().begin(nullptr, 64, used));
    }
    EXPECT_EQ(words().distances.load() - before, 4000U);
}

TEST(ProfiledBlocks, FreeEndsTheSampleAndTheMarkThatItCovers) {
    struct Counted final : base::BlockMark {
        void on_free(std::size_t bytes) noexcept override { freed_bytes += bytes; }
        BlockMark* charge() noexcept override { return this; }
        std::size_t freed_bytes = 0;
    };
    Counted counted;
    const std::uint64_t before = words().live_bytes.load();
    ProfiledBlock* const block = profiled_blocks().begin(nullptr, 1000, mean);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->charge(), nullptr);
    block->covered = &counted;
    EXPECT_EQ(block->charge(), &counted);
    block->on_free(1024);
    EXPECT_EQ(counted.freed_bytes, 1024U);
    EXPECT_EQ(words().live_bytes.load(), before);
}

TEST(ProfiledBlocks, CountsLostSamples) {
    profiled_blocks().end(*profiled_blocks().begin(nullptr, 100, mean));
    const std::uint64_t before = words().lost_samples.load();
    profiled_blocks().count_lost();
    EXPECT_EQ(words().lost_samples.load(), before + 1);
}

}  // namespace
}  // namespace tensorpool::watch
