// Replays the findings of piece_fuzz, with every compiler.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "rest/pieces/fed_piece.hpp"

namespace tensorpool::stashing {
namespace {

bool is_decoded(const std::string& bytes) {
    return testing::feed_piece(std::as_bytes(std::span(bytes)));
}

TEST(PieceCorpus, PiecesComeBackExactlyAndDamageIsNoticed) {
    unsigned files = 0;
    unsigned decoded = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TENSORPOOL_PIECE_CORPUS)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        EXPECT_NO_THROW(decoded += is_decoded(bytes)) << entry.path();
        ++files;
    }
    EXPECT_GT(files, 20U);
    EXPECT_GT(decoded, 10U);
}

TEST(PieceCorpus, RandomBytesHoldTheSamePromises) {
    std::mt19937 random(1);
    unsigned decoded = 0;
    for (int round = 0; round < 5000; ++round) {
        std::string bytes(random() % 200, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        EXPECT_NO_THROW(decoded += is_decoded(bytes)) << "round " << round;
    }
    EXPECT_GT(decoded, 100U);
}

}  // namespace
}  // namespace tensorpool::stashing
