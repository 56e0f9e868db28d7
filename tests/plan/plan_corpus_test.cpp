// Replays the findings of plan_fuzz, with every compiler.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "plan/fed_plan.hpp"

namespace tensorpool::planned {
namespace {

bool is_read(const std::string& text) {
    return testing::feed_plan(std::as_bytes(std::span(text)));
}

TEST(PlanCorpus, FilesAreReadOrRejected) {
    unsigned files = 0;
    unsigned read = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TENSORPOOL_PLAN_CORPUS)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        EXPECT_NO_THROW(read += is_read(text)) << entry.path();
        ++files;
    }
    EXPECT_GT(files, 20U);
    EXPECT_GT(read, 5U);
}

TEST(PlanCorpus, RandomFilesAreReadOrRejected) {
    std::mt19937 random(1);
    unsigned read = 0;
    for (int round = 0; round < 5000; ++round) {
        std::string text(random() % 40, '\0');
        for (char& byte : text) byte = static_cast<char>(random());
        EXPECT_NO_THROW(read += is_read(text)) << "round " << round;
    }
    EXPECT_GT(read, 100U);
}

}  // namespace
}  // namespace tensorpool::planned
