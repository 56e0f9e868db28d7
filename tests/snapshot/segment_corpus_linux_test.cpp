#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "statistics/overwritten_segment_linux.hpp"

namespace tensorpool {
namespace {

using testing::OverwrittenSegment;

TEST(OverwrittenSegment, FuzzerCorpusIsReadSafely) {
    unsigned files = 0;
    for (const auto& file : std::filesystem::directory_iterator(TENSORPOOL_SEGMENT_CORPUS)) {
        std::ifstream stream(file.path(), std::ios::binary);
        const std::vector<std::uint8_t> bytes(std::istreambuf_iterator<char>(stream), {});
        EXPECT_NO_THROW(OverwrittenSegment(bytes).run()) << file.path();
        ++files;
    }
    EXPECT_GT(files, 20U);
}

TEST(OverwrittenSegment, RandomInputIsReadSafely) {
    std::mt19937 random(4);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::uint8_t> bytes(random() % 400);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        EXPECT_NO_THROW(OverwrittenSegment(bytes).run()) << "round " << round;
    }
}

}  // namespace
}  // namespace tensorpool
