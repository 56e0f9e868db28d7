// Replays the findings of handle_fuzz, with every compiler.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "models/fed_handles.hpp"

namespace tensorpool {
namespace {

TEST(HandleCorpus, HoldsForTheFuzzersPrograms) {
    unsigned count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TENSORPOOL_HANDLE_CORPUS)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<std::uint8_t> program{std::istreambuf_iterator<char>(file), {}};
        EXPECT_NO_THROW(testing::feed_handles(program)) << entry.path();
        ++count;
    }
    EXPECT_GT(count, 20U);
}

TEST(HandleCorpus, HoldsForRandomProgramsWithAllChecks) {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::uint8_t> program(300);
        for (std::uint8_t& byte : program) byte = static_cast<std::uint8_t>(random());
        program[0] = static_cast<std::uint8_t>(round);
        EXPECT_NO_THROW(testing::feed_handles(program)) << "round " << round;
    }
}

}  // namespace
}  // namespace tensorpool
