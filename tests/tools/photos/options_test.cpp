#include "options.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tensorpool::photos {
namespace {

std::string complaint_about(const std::vector<std::string>& arguments) {
    try {
        parse_options(arguments);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(Options, DefaultsAreThreeRoundsOnOneThread) {
    const Options options = parse_options({});
    EXPECT_EQ(options.rounds, 3);
    EXPECT_EQ(options.threads, 1);
    EXPECT_FALSE(options.output.empty());
    EXPECT_TRUE(options.pictures.empty());
    EXPECT_TRUE(options.work.empty());
    EXPECT_FALSE(options.frugal);
    EXPECT_FALSE(options.help);
}

TEST(Options, OtherArgumentsArePictures) {
    const Options options = parse_options(
        {"a.jpg", "--rounds", "5", "--threads", "2", "--output", "out", "--", "--b.jpg", "c"});
    EXPECT_EQ(options.rounds, 5);
    EXPECT_EQ(options.threads, 2);
    EXPECT_EQ(options.output, "out");
    EXPECT_EQ(options.pictures, (std::vector<std::string>{"a.jpg", "--b.jpg", "c"}));
    EXPECT_TRUE(parse_options({"--frugal"}).frugal);
    EXPECT_TRUE(parse_options({"--help"}).help);
}

TEST(Options, InvalidOptionsAreReportedWithWhatWasExpected) {
    EXPECT_EQ(complaint_about({"--fast"}), "--fast: unknown option; --help lists the options");
    EXPECT_EQ(complaint_about({"--rounds"}), "--rounds: a value is missing");
    for (const char* number : {"0", "100", "-1", "two", "2x", "", "99999999999"}) {
        EXPECT_EQ(complaint_about({"--rounds", number}),
                  "--rounds: \"" + std::string(number) + "\" is not a number from 1 to 99");
    }
}

TEST(Options, TheHelpNamesEachOption) {
    for (const char* option : {"--rounds", "--threads", "--frugal", "--output", "PICTURE|FOLDER"}) {
        EXPECT_NE(usage().find(option), std::string::npos) << option;
    }
}

}  // namespace
}  // namespace tensorpool::photos
