#include "formats/profile/named_profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using testing::MadeProfile;

TEST(ProfileNames, SuccessiveProfilesMayNumberTheirFramesInAnotherWay) {
    ProfileNames names;
    names.name(testing::two_sites(), Value::live);
    MadeProfile made;
    const auto last = made.python("last", 30);
    const auto library = made.frame("/nowhere/lib.so", 0x10);
    made.site({library, last}, 100);
    const NamedProfile named = names.name(made.profile(), Value::live);
    EXPECT_EQ(stack_of(named, named.profile.sites[0]),
              (std::vector<std::string>{"last at train.py:30", "lib.so+0x10"}));
}

TEST(ProfileNames, AFileWithoutSymbolsIsReportedOnce) {
    ProfileNames names;
    names.name(testing::two_sites(), Value::live);
    const NamedProfile named = names.name(testing::two_sites(), Value::live);
    EXPECT_EQ(std::ranges::count_if(
                  named.problems,
                  [](const std::string& problem) { return problem.starts_with("/nowhere/"); }),
              1);
}

}  // namespace
}  // namespace tensorpool::command::profile
