#include "contest/result_text.hpp"

#include <gtest/gtest.h>

namespace tensorpool::photos {
namespace {

constexpr Measurement malloc_took{2.0, 1'000'000, std::uint64_t{400} << 20};

TEST(ResultText, CommasSeparateGroupsOfThreeDigits) {
    EXPECT_EQ(with_commas(0), "0");
    EXPECT_EQ(with_commas(999), "999");
    EXPECT_EQ(with_commas(1000), "1,000");
    EXPECT_EQ(with_commas(1234567), "1,234,567");
}

TEST(ResultText, TheTableHasValuesAndRatiosToTheFirstRow) {
    const std::string text =
        table({{"malloc", malloc_took}, {"tensorpool", {0.5, 50'000, std::uint64_t{420} << 20}}});
    EXPECT_EQ(text,
              "memory from           CPU seconds           page faults          peak memory\n"
              "malloc                2.00   1.00      1,000,000   1.00       400 MiB   1.00\n"
              "tensorpool            0.50   0.25         50,000   0.05       420 MiB   1.05\n");
}

TEST(ResultText, TheTableFitsATerminalOf80Columns) {
    const Measurement large{12345.67, 12'345'678'901, std::uint64_t{999'999} << 20};
    const std::string text = table({{"tensorpool", large}});
    EXPECT_LE(text.size() - text.find('\n') - 2, 80U);
}

TEST(ResultText, TheVerdictStatesTheSavings) {
    EXPECT_EQ(verdict({0.62, 120'000, std::uint64_t{440} << 20}, malloc_took),
              "The pool took 0.31 of the CPU time and 0.12 of the page faults of malloc,\n"
              "with 1.10 of its peak memory.");
}

TEST(ResultText, TheVerdictStatesThatNothingWasSaved) {
    for (const double seconds : {1.995, 2.0, 2.5}) {
        const std::string text = verdict({seconds, 1'500'000, 1}, malloc_took);
        EXPECT_EQ(text.find("The pool saved no CPU time here: it took "), 0U) << text;
        EXPECT_NE(text.find("1.50 of the page faults"), std::string::npos);
    }
}

TEST(ResultText, RatiosBelowAHundredthHaveThreeDecimals) {
    EXPECT_NE(verdict({1, 2'800, 1}, malloc_took).find("0.003 of the page faults"),
              std::string::npos);
}

TEST(ResultText, ARatioToZeroIsADash) {
    EXPECT_NE(verdict({1, 1, 1}, {}).find("took - of"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::photos
