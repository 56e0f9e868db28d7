// Whether a program has a heap profile, by what it asked for.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "platform/tools/memory_tools.hpp"
#include "support/run_program.hpp"

namespace tensorpool {
namespace {

class ProfileOfAProgram : public ::testing::Test {
protected:
    void SetUp() override {
        ::unsetenv("TENSORPOOL_PROFILE");
        if (platform::has_memory_tool()) GTEST_SKIP() << "programs under a tool take no samples";
    }

    static std::string with(const testing::Variables& variables,
                            std::vector<std::string> arguments = {}) {
        return testing::run_program(PROFILE_PROGRAM, std::move(arguments), variables).output;
    }
};

TEST_F(ProfileOfAProgram, IsOffUnlessTheProgramAsks) {
    EXPECT_EQ(with({}), "0 none\n");
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", ""}}), "0 none\n");
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", "off"}}), "0 none\n");
    EXPECT_EQ(with({{"TENSORPOOL_CHECKS", "sampled"}}), "0 none\n");
}

TEST_F(ProfileOfAProgram, IsOnIfTheProgramAsks) {
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", "on"}}), "524288 some\n");
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", "64KiB"}}), "65536 some\n");
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", "all"}}), "1 some\n");
    EXPECT_EQ(with({}, {"65536"}), "65536 some\n");
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", "on"}}, {"0"}), "0 none\n");
}

// This program is linked with such gaps.
TEST_F(ProfileOfAProgram, HasStacksIfThereAreGapsBetweenItsSegments) {
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", "on"}}), "524288 some\n");
}

TEST_F(ProfileOfAProgram, IsOnAfterAValueThatCannotBeRead) {
    EXPECT_EQ(with({{"TENSORPOOL_PROFILE", "often"}}), "524288 some\n");
}

}  // namespace
}  // namespace tensorpool
