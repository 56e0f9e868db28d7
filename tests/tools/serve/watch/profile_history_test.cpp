#include "serve/watch/history.hpp"

#include <gtest/gtest.h>

#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::serve {
namespace {

using profile::testing::MadeProfile;

HeapProfile at_time(std::uint64_t unix_ns) {
    HeapProfile profile = profile::testing::two_sites();
    profile.time_unix_ns = unix_ns;
    return profile;
}

TEST(FoldSmallSites, AddsThemUpInOneSiteWithoutAStack) {
    MadeProfile made;
    made.site({made.python("large", 1)}, 1000);
    for (std::uint64_t line = 2; line < 12; ++line) made.site({made.python("small", line)}, 4);
    made.site({made.python("medium", 99)}, 20);
    const HeapProfile folded = fold_small_sites(made.profile(), 0.005);
    ASSERT_EQ(folded.sites.size(), 3U);
    EXPECT_EQ(folded.sites[0].live_bytes, 1000U);
    EXPECT_EQ(folded.sites[1].live_bytes, 20U);
    EXPECT_EQ(folded.frames.at(folded.sites[1].stack.at(0)).offset, 99U);
    EXPECT_TRUE(folded.sites[2].stack.empty());
    EXPECT_EQ(folded.sites[2].live_bytes, 40U);
    EXPECT_EQ(folded.sites[2].peak_bytes, 80U);
    EXPECT_EQ(folded.sites[2].allocated_bytes, 160U);
    EXPECT_EQ(folded.sites[2].samples, 30U);
    EXPECT_EQ(folded.frames.size(), 2U);
}

TEST(FoldSmallSites, KeepsASiteThatWasLargeAtThePeak) {
    MadeProfile made;
    made.site({made.python("now", 1)}, 1000);
    made.site({made.python("then", 2)}, 0).peak_bytes = 500;
    made.site({}, 0);
    const HeapProfile folded = fold_small_sites(made.profile(), 0.005);
    ASSERT_EQ(folded.sites.size(), 3U);
    EXPECT_EQ(folded.sites[1].peak_bytes, 500U);
    EXPECT_FALSE(folded.sites[1].stack.empty());
}

TEST(FoldSmallSites, DropsIndicesOfMissingFrames) {
    MadeProfile made;
    made.site({made.python("f", 1), 77}, 10);
    EXPECT_EQ(fold_small_sites(made.profile(), 0.005).sites.at(0).stack,
              (std::vector<std::uint32_t>{0}));
    EXPECT_TRUE(fold_small_sites({}, 0.005).sites.empty());
}

TEST(ProfileHistory, TakesOneProfileAStepAndForgetsTheOldest) {
    ProfileHistory history;
    EXPECT_TRUE(history.is_due(0));
    for (std::uint64_t i = 1; i <= ProfileHistory::max_count + 3; ++i) {
        EXPECT_TRUE(history.is_due(i * ProfileHistory::step_ns));
        history.add(at_time(i), i * ProfileHistory::step_ns);
        EXPECT_FALSE(history.is_due(i * ProfileHistory::step_ns + 1));
    }
    EXPECT_EQ(history.times().size(), ProfileHistory::max_count);
    EXPECT_EQ(history.times().front(), 4U);
}

TEST(ProfileHistory, FindsTheNewestUntilATime) {
    ProfileHistory history;
    EXPECT_EQ(history.at(100), nullptr);
    history.add(at_time(10), 0);
    history.add(at_time(20), ProfileHistory::step_ns);
    EXPECT_EQ(history.at(9), nullptr);
    EXPECT_EQ(history.at(19)->time_unix_ns, 10U);
    EXPECT_EQ(history.at(20)->time_unix_ns, 20U);
    EXPECT_EQ(history.at(1000)->time_unix_ns, 20U);
}

}  // namespace
}  // namespace tensorpool::command::serve
