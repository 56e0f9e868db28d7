// Replays the findings of environment_fuzz, with every compiler.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "pool/options/fed_environment.hpp"

namespace tensorpool {
namespace {

void feed(const std::string& text) {
    testing::feed_environment({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

TEST(EnvironmentCorpus, TextsAreReadOrReportedInOneLine) {
    unsigned count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TENSORPOOL_ENVIRONMENT_CORPUS)) {
        std::ifstream file(entry.path(), std::ios::binary);
        EXPECT_NO_THROW(feed({std::istreambuf_iterator<char>(file), {}})) << entry.path();
        ++count;
    }
    EXPECT_GT(count, 20U);
}

TEST(EnvironmentCorpus, RandomTextsAreReadOrReportedInOneLine) {
    std::mt19937 random(1);
    const std::string letters("0123456789.-BKMGTib\0offonautobasic \n\x7f\xff", 38);
    for (int round = 0; round < 3000; ++round) {
        std::string text(random() % 60, '\0');
        for (char& c : text)
            c = random() % 2 == 0 ? letters[random() % letters.size()] : char(random());
        EXPECT_NO_THROW(feed(text)) << "round " << round;
    }
}

}  // namespace
}  // namespace tensorpool
