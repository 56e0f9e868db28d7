#include "rest/in_place/frozen_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tensorpool::stashing {
namespace {

class PieceToolsTest : public ::testing::Test {
protected:
    void SetUp() override {
        EXPECT_FALSE(tools_.is_set_up());
        ASSERT_TRUE(tools_.set_up());
    }
    std::vector<std::byte> encode(const std::vector<std::byte>& piece) {
        const auto encoded = tools_.encode(piece, DataType::of<float>());
        return {encoded.begin(), encoded.end()};
    }

    PieceTools tools_;
};

TEST_F(PieceToolsTest, DecodesWhatItEncoded) {
    for (const std::size_t bytes : {std::size_t{4096}, PieceTools::piece_bytes}) {
        std::vector<std::byte> piece(bytes);
        for (std::size_t i = 0; i != bytes; ++i) piece[i] = std::byte(i * i / 7);
        const auto decoded = tools_.decode(encode(piece), bytes);
        EXPECT_TRUE(std::ranges::equal(decoded, piece));
    }
}

TEST_F(PieceToolsTest, DecodedPieceBeginsAtAPage) {
    const std::vector<std::byte> piece(PieceTools::piece_bytes, std::byte{3});
    const auto decoded = tools_.decode(encode(piece), piece.size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(decoded.data()) % platform::page_bytes(), 0U);
}

TEST_F(PieceToolsTest, DecodesNothingFromADamagedEncoding) {
    std::vector<std::byte> encoded = encode(std::vector<std::byte>(8192, std::byte{5}));
    encoded.back() ^= std::byte{1};
    EXPECT_TRUE(tools_.decode(encoded, 8192).empty());
    EXPECT_TRUE(tools_.decode({}, 8192).empty());
}

}  // namespace
}  // namespace tensorpool::stashing
