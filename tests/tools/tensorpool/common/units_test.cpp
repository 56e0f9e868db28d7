#include "common/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorpool::command {
namespace {

TEST(Units, SizesHaveThreeDigits) {
    EXPECT_EQ(format_size(0), "0");
    EXPECT_EQ(format_size(1023), "1023 B");
    EXPECT_EQ(format_size(1024), "1.00 KiB");
    EXPECT_EQ(format_size(1536), "1.50 KiB");
    EXPECT_EQ(format_size(std::uint64_t{123} << 20), "123 MiB");
    EXPECT_EQ(format_size(UINT64_MAX), "16.0 EiB");
}

TEST(Units, SizesAreNotRoundedUpTo1024OfAUnit) {
    EXPECT_EQ(format_size((std::uint64_t{1} << 20) - 1), "1.00 MiB");
    EXPECT_EQ(format_size((std::uint64_t{1} << 30) - 1), "1.00 GiB");
    EXPECT_EQ(format_size(10'239), "10.0 KiB");
}

TEST(Units, SizesFitTheirColumn) {
    for (std::uint64_t bytes = 1; bytes < UINT64_MAX / 3; bytes = bytes * 3 + 7) {
        EXPECT_LE(format_size(bytes).size(), 8u) << bytes;
    }
}

TEST(Units, BytesArePrintedInFullOnRequest) {
    EXPECT_EQ(format_size(1'500'000, Sizes::bytes), "1500000");
    EXPECT_EQ(format_growth(-1'500'000, Sizes::bytes), "-1500000");
}

TEST(Units, GrowthHasASign) {
    EXPECT_EQ(format_growth(0), "0");
    EXPECT_EQ(format_growth(2048), "+2.00 KiB");
    EXPECT_EQ(format_growth(-2048), "-2.00 KiB");
    EXPECT_EQ(format_growth(INT64_MIN), "-8.00 EiB");
}

TEST(Units, CountsAreShort) {
    EXPECT_EQ(format_count(0), "0");
    EXPECT_EQ(format_count(0.001), "<0.01");
    EXPECT_EQ(format_count(0.25), "0.25");
    EXPECT_EQ(format_count(7), "7");
    EXPECT_EQ(format_count(9999), "9999");
    EXPECT_EQ(format_count(12'345), "12.3k");
    EXPECT_EQ(format_count(999'999), "1.00M");
    EXPECT_EQ(format_count(4.56e6), "4.56M");
    EXPECT_EQ(format_count(-1), "0");
}

TEST(Units, NearlyAllIsNotShownAsAll) {
    EXPECT_EQ(format_part(0), "0.0%");
    EXPECT_EQ(format_part(0.987), "98.7%");
    EXPECT_EQ(format_part(0.99999), "99.9%");
    EXPECT_EQ(format_part(1), "100%");
}

TEST(Units, TimesHaveOneUnit) {
    EXPECT_EQ(format_time(12), "12 s");
    EXPECT_EQ(format_time(180), "3 min");
    EXPECT_EQ(format_time(5 * 3600), "5 h");
    EXPECT_EQ(format_time(3 * 86400), "3 d");
}

}  // namespace
}  // namespace tensorpool::command
