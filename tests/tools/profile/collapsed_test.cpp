#include <gtest/gtest.h>

#include "formats/profile/formats.hpp"
#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using testing::MadeProfile;

TEST(Collapsed, HasALineForEachStack) {
    EXPECT_EQ(to_collapsed(name_frames(testing::two_sites(), Value::live)),
              "<module> at train.py:3;load at train.py:12;lib.so+0x10 6000\n"
              "<module> at train.py:3;step at train.py:20 2000\n");
}

TEST(Collapsed, AddsSitesWithTheSameNamesUp) {
    MadeProfile made;
    made.site({}, 100);
    made.site({5}, 20);
    made.site({made.python("f", 1)}, 0);
    EXPECT_EQ(to_collapsed(name_frames(made.profile(), Value::peak)), "[other stacks] 240\n");
}

TEST(Collapsed, KeepsEachStackOnItsLine) {
    MadeProfile made;
    made.site({made.frame("python:a;b\nc@x.py", 1)}, 100);
    EXPECT_EQ(to_collapsed(name_frames(made.profile(), Value::live)), "a:b?c at x.py:1 100\n");
}

}  // namespace
}  // namespace tensorpool::command::profile
