#include "formats/profile/named_profile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using testing::MadeProfile;
using Texts = std::vector<std::string>;

TEST(NamedProfile, HasTheLargestSiteFirstAndTheOutermostCallFirst) {
    const NamedProfile named = name_frames(testing::two_sites(), Value::live);
    ASSERT_EQ(named.profile.sites.size(), 2U);
    EXPECT_EQ(named.profile.sites[0].live_bytes, 6000U);
    EXPECT_EQ(stack_of(named, named.profile.sites[0]),
              (Texts{"<module> at train.py:3", "load at train.py:12", "lib.so+0x10"}));
    EXPECT_EQ(line_of(named, named.profile.sites[0]), "load at train.py:12");
    EXPECT_EQ(named.total(Value::live), 8000U);
    EXPECT_EQ(named.total(Value::allocated), 32000U);
}

TEST(NamedProfile, SortsByTheChosenValue) {
    HeapProfile profile = testing::two_sites();
    profile.sites[0].peak_bytes = 50'000;
    const NamedProfile named = name_frames(profile, Value::peak);
    EXPECT_EQ(named.profile.sites[0].live_bytes, 2000U);
    EXPECT_EQ(bytes_of(named.profile.sites[0], named.value), 50'000U);
}

TEST(NamedProfile, LeavesTheLibraryOfThePoolOut) {
    MadeProfile made;
    const auto pool = made.frame("/usr/lib/libtensorpool.so.0", 7);
    const auto main = made.frame("/nowhere/program", 0x20);
    made.site({pool, pool, main}, 100);
    made.site({pool}, 50);
    const NamedProfile named = name_frames(made.profile(), Value::live);
    EXPECT_EQ(stack_of(named, named.profile.sites[0]), Texts{"program+0x20"});
    EXPECT_EQ(line_of(named, named.profile.sites[0]), "program+0x20");
    EXPECT_EQ(stack_of(named, named.profile.sites[1]), Texts{"libtensorpool.so.0+0x7"});
}

TEST(NamedProfile, NamesSitesWithoutAStack) {
    MadeProfile made;
    made.site({}, 100);
    const NamedProfile named = name_frames(made.profile(), Value::live);
    EXPECT_EQ(stack_of(named, named.profile.sites[0]), Texts{"[other stacks]"});
    EXPECT_EQ(line_of(named, named.profile.sites[0]), "[other stacks]");
}

TEST(NamedProfile, SkipsIndicesBeyondTheFrames) {
    MadeProfile made;
    const auto main = made.frame("", 0x20);
    made.site({7, main, 4'000'000'000}, 100);
    made.site({1}, 50);
    const NamedProfile named = name_frames(made.profile(), Value::live);
    EXPECT_EQ(stack_of(named, named.profile.sites[0]), Texts{"?+0x20"});
    EXPECT_EQ(stack_of(named, named.profile.sites[1]), Texts{"[other stacks]"});
}

TEST(NamedProfile, AcceptsAnyNumberOfBlocks) {
    ProfileSite site;
    EXPECT_EQ(blocks_of(site, Value::live), 0U);
    site.live_blocks = 2.6;
    EXPECT_EQ(blocks_of(site, Value::live), 3U);
    site.live_bytes = 100;
    for (const double blocks :
         {0.2, -5.0, std::nan(""), 1e300, std::numeric_limits<double>::infinity()}) {
        site.live_blocks = blocks;
        EXPECT_EQ(blocks_of(site, Value::live), 1U) << blocks;
    }
}

}  // namespace
}  // namespace tensorpool::command::profile
