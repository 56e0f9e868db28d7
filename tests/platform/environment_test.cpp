#include "platform/environment.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tensorpool::platform {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t gib = 1024 * mib;

constexpr const char* variable = "TENSORPOOL_TEST_ENVIRONMENT";

class EnvironmentReaders : public ::testing::Test {
protected:
    ~EnvironmentReaders() override { unsetenv(variable); }

    /// Returns what `reader` makes of `option` when the variable is `text`.
    template <class Option, class Reader>
    Option read_from(const std::string& text, Option option, Reader reader) {
        EXPECT_EQ(setenv(variable, text.c_str(), 1), 0);
        ::testing::internal::CaptureStderr();
        reader(variable, option);
        stderr_text_ = ::testing::internal::GetCapturedStderr();
        return option;
    }

    static std::string message(const std::string& text, const std::string& expected,
                               const std::string& used) {
        return std::string("tensorpool: ") + variable + " is '" + text + "'; expected " + expected +
               "; used instead: " + used + "\n";
    }

    std::string stderr_text_;
};

TEST(ParseNumber, AcceptsOnlyWholeText) {
    EXPECT_EQ(parse_number<unsigned>("17"), 17U);
    EXPECT_EQ(parse_number<double>("0.5"), 0.5);
    for (const char* const text : {"", "-1", "17 ", " 17", "17x", "4294967296"}) {
        EXPECT_EQ(parse_number<std::uint32_t>(text), std::nullopt) << text;
    }
}

TEST(ParseBytes, AcceptsNumbersWithBinaryUnits) {
    for (const auto& [text, bytes] : {std::pair{"0", std::size_t{0}},
                                      {"100", 100},
                                      {"100B", 100},
                                      {"0.5KiB", 512},
                                      {"3MiB", 3 * mib},
                                      {".5GiB", 512 * mib},
                                      {"1TiB", 1024 * gib}}) {
        EXPECT_EQ(parse_bytes(text), bytes) << text;
    }
}

TEST(ParseBytes, RejectsOtherTexts) {
    for (const char* const text : {"", "much", "-1", "2GB", "2 GiB", "2gib", "GiB", "1.2.3MiB",
                                   "0x10", "99999999TiB", "1e3", "nan", "inf"}) {
        EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
    }
}

TEST(ParseChoice, AcceptsOnlyExactNames) {
    static constexpr Named<int> choices[] = {{"one", 1}, {"two", 2}};
    EXPECT_EQ(parse_choice("two", choices), 2);
    for (const char* const text : {"", "One", "two ", "three"}) {
        EXPECT_EQ(parse_choice(text, choices), std::nullopt) << text;
    }
}

TEST(TextOf, FormatsNoneAndNoLimitAsWords) {
    EXPECT_EQ(text_of(0), "none");
    EXPECT_EQ(text_of(1536), "1.5 KiB");
    EXPECT_EQ(text_of(SIZE_MAX), "no limit");
}

TEST_F(EnvironmentReaders, UnsetVariableChangesNothing) {
    std::size_t option = 77;
    ::testing::internal::CaptureStderr();
    read_bytes(variable, option);
    EXPECT_EQ(option, 77U);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(EnvironmentReaders, ValidValueIsAcceptedSilently) {
    EXPECT_EQ(read_from("2KiB", std::size_t{7}, read_bytes), 2 * kib);
    EXPECT_EQ(stderr_text_, "");
    EXPECT_EQ(read_from("0", std::size_t{7}, read_bytes), 0U);
    EXPECT_EQ(stderr_text_, "");
    EXPECT_EQ(read_from("1", std::size_t{7}, read_bytes_above_0), 1U);
    EXPECT_EQ(stderr_text_, "");
}

TEST_F(EnvironmentReaders, InvalidSizeIsReportedAndNotUsed) {
    EXPECT_EQ(read_from("much", 3 * mib, read_bytes), 3 * mib);
    EXPECT_EQ(stderr_text_, message("much", "a size such as 512MiB or 2GiB", "3 MiB"));
}

TEST_F(EnvironmentReaders, ZeroIsRejectedIfPositiveSizeIsExpected) {
    for (const char* const text : {"0", "0.1", "0KiB", "-1"}) {
        EXPECT_EQ(read_from(text, 8 * gib, read_bytes_above_0), 8 * gib);
        EXPECT_EQ(stderr_text_, message(text, "a size above 0 such as 512MiB or 2GiB", "8 GiB"));
    }
}

TEST_F(EnvironmentReaders, NumberOutOfRangeIsReportedAndNotUsed) {
    const auto reader = [](const char* name, double& option) {
        read_number(name, option, 4, "a number from 0 to 4");
    };
    EXPECT_EQ(read_from("0", 0.5, reader), 0);
    EXPECT_EQ(read_from("4", 0.5, reader), 4);
    EXPECT_EQ(stderr_text_, "");
    for (const char* const text : {"", "much", "-0.1", "4.1", "nan", "inf", "0.5x"}) {
        EXPECT_EQ(read_from(text, 0.5, reader), 0.5);
        EXPECT_EQ(stderr_text_, message(text, "a number from 0 to 4", "0.500000"));
    }
}

TEST_F(EnvironmentReaders, LongValueIsTruncatedInMessage) {
    read_from(std::string(1000, 'x'), std::size_t{0}, read_bytes);
    EXPECT_EQ(stderr_text_, message(std::string(60, 'x'), "a size such as 512MiB or 2GiB", "none"));
}

}  // namespace
}  // namespace tensorpool::platform
