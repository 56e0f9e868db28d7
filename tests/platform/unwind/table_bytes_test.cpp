#include "platform/unwind/table_bytes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorpool::platform::unwind {
namespace {

TableBytes bytes_of(const std::vector<unsigned char>& bytes) {
    return {bytes.data(), bytes.data() + bytes.size()};
}

TEST(TableBytes, NumbersOfSevenBitsABytePreserveTheirSign) {
    const std::vector<unsigned char> numbers = {2, 0x7E, 0xFF, 0x00, 0x81, 0x7F, 0x80, 0x7F, 0x40};
    TableBytes bytes = bytes_of(numbers);
    EXPECT_EQ(bytes.take_sleb(), 2);
    EXPECT_EQ(bytes.take_sleb(), -2);
    EXPECT_EQ(bytes.take_sleb(), 127);
    EXPECT_EQ(bytes.take_sleb(), -127);
    EXPECT_EQ(bytes.take_sleb(), -128);
    EXPECT_EQ(bytes.take_uleb(), 64U);
    EXPECT_TRUE(bytes.is_empty());
    EXPECT_FALSE(bytes.is_bad());
}

TEST(TableBytes, BeyondTheEndThereAreZeros) {
    const std::vector<unsigned char> three = {1, 2, 3};
    TableBytes bytes = bytes_of(three);
    EXPECT_EQ(bytes.take<std::uint32_t>(), 0U);
    EXPECT_TRUE(bytes.is_bad());
    EXPECT_TRUE(bytes.is_empty());
    EXPECT_EQ(bytes.take_uleb(), 0U);
    EXPECT_EQ(bytes.take_sleb(), 0);
    EXPECT_EQ(bytes.skip(1), nullptr);
}

TEST(TableBytes, ANumberThatDoesNotEndIsBad) {
    const std::vector<unsigned char> endless(40, 0xFF);
    TableBytes bytes = bytes_of(endless);
    bytes.take_uleb();
    EXPECT_TRUE(bytes.is_bad());
}

}  // namespace
}  // namespace tensorpool::platform::unwind
