#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace tensorpool::base {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = kib * kib;

TEST(BytesText, WholeUnitsHaveNoDecimal) {
    EXPECT_STREQ(BytesText(0).c_str(), "0 B");
    EXPECT_STREQ(BytesText(64).c_str(), "64 B");
    EXPECT_STREQ(BytesText(1023).c_str(), "1023 B");
    EXPECT_STREQ(BytesText(kib).c_str(), "1 KiB");
    EXPECT_STREQ(BytesText(64 * kib).c_str(), "64 KiB");
    EXPECT_STREQ(BytesText(mib << 20).c_str(), "1 TiB");
}

TEST(BytesText, FractionsHaveOneDecimal) {
    EXPECT_STREQ(BytesText(kib + 512).c_str(), "1.5 KiB");
    EXPECT_STREQ(BytesText(mib + 820 * kib).c_str(), "1.8 MiB");
}

TEST(BytesText, RoundsDown) {
    EXPECT_STREQ(BytesText(kib + 1).c_str(), "1 KiB");
    EXPECT_STREQ(BytesText(2 * kib - 1).c_str(), "1.9 KiB");
    EXPECT_STREQ(BytesText(mib - 1).c_str(), "1023.9 KiB");
    EXPECT_STREQ(BytesText(UINT64_MAX).c_str(), "15.9 EiB");
}

TEST(BytesText, CopiesAreIndependent) {
    const BytesText copy = BytesText(3 * kib);
    EXPECT_STREQ(copy.c_str(), "3 KiB");
    EXPECT_LE(std::strlen(BytesText(mib * 1000 - 1).c_str()), 12U);
}

TEST(FixedText, AppendsPieces) {
    char text[16];
    FixedText to(text, sizeof text);
    EXPECT_STREQ(text, "");
    to.add("%d B", 12);
    to.add(", %s", "more");
    EXPECT_STREQ(text, "12 B, more");
}

TEST(FixedText, TruncatesAtEndOfBuffer) {
    char text[8];
    FixedText to(text, sizeof text);
    to.add("%s", "12345678901234");
    EXPECT_STREQ(text, "1234567");
    to.add("more");
    EXPECT_STREQ(text, "1234567");
    char none[1] = {'x'};
    FixedText(none, 1).add("more");
    EXPECT_EQ(none[0], '\0');
}

}  // namespace
}  // namespace tensorpool::base
