#include "leaks/observation.hpp"

#include <gtest/gtest.h>

#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::leaks {
namespace {

using profile::testing::MadeProfile;
using Values = std::vector<double>;

HeapProfile profile_of(std::vector<std::uint64_t> live, std::uint64_t time_unix_ns) {
    MadeProfile made;
    for (const std::uint64_t bytes : live) made.site({}, bytes);
    made.profile().time_unix_ns = time_unix_ns;
    return made.profile();
}

TEST(Observation, IsEmptyAtFirst) {
    const Observation observation;
    EXPECT_EQ(observation.profiles(), 0U);
    EXPECT_EQ(observation.iterations(), 0U);
    EXPECT_EQ(observation.seconds(), 0);
    EXPECT_TRUE(observation.sites().empty());
}

TEST(Observation, HasTheValuesOfEachSiteAtEachIteration) {
    Observation observation;
    observation.add(profile_of({100}, 1'000'000'000), 5);
    observation.add(profile_of({200, 30}, 2'000'000'000), 6);
    observation.add(profile_of({}, 4'500'000'000), 9);
    EXPECT_EQ(observation.profiles(), 3U);
    EXPECT_EQ(observation.iterations(), 4U);
    EXPECT_EQ(observation.iterations_since(1), 3U);
    EXPECT_EQ(observation.seconds(), 3.5);
    EXPECT_EQ(observation.sites().at(1).live, (Values{100, 200, 0}));
    EXPECT_EQ(observation.sites().at(1).allocated, (Values{400, 800, 800}));
    EXPECT_EQ(observation.sites().at(2).live, (Values{0, 30, 0}));
    EXPECT_EQ(observation.sites().at(2).allocated, (Values{0, 120, 120}));
}

}  // namespace
}  // namespace tensorpool::command::leaks
