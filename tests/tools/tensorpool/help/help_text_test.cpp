#include "help/help_text.hpp"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <sstream>

#include "command.hpp"
#include "common/printable.hpp"

namespace tensorpool::command {
namespace {

constexpr std::size_t columns = 80;
constexpr std::size_t rows = 23;  // and one row for the prompt

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

class HelpText : public ::testing::Test {
protected:
    Settings settings_;
    std::unique_ptr<CLI::App> app_ = declare(settings_);

    std::vector<const CLI::App*> all() const {
        std::vector<const CLI::App*> apps = shown_subcommands(*app_);
        apps.push_back(app_.get());
        return apps;
    }
};

TEST_F(HelpText, FitsAScreen) {
    for (const CLI::App* const app : all()) {
        const auto lines = lines_of(help_text(*app));
        EXPECT_LE(lines.size(), rows) << help_text(*app);
        for (const std::string& line : lines) EXPECT_LE(line.size(), columns) << line;
    }
}

TEST_F(HelpText, HasExamples) {
    for (const CLI::App* const app : all()) {
        EXPECT_NE(help_text(*app).find("Examples:\n  tensorpool "), std::string::npos)
            << help_text(*app);
    }
}

TEST_F(HelpText, DescribesEachOption) {
    for (const CLI::App* const app : all()) {
        for (const CLI::Option* const option : shown_options(*app)) {
            EXPECT_FALSE(option->get_description().empty()) << names_of(*option);
            EXPECT_NE(help_text(*app).find(names_of(*option)), std::string::npos);
        }
    }
}

TEST_F(HelpText, ListsAllSubcommandsExceptThoseForTheBuild) {
    std::string names;
    for (const CLI::App* const app : shown_subcommands(*app_)) names += app->get_name() + ' ';
    EXPECT_EQ(names,
              "ls top stat events serve run record trim explain profile leaks holders replay "
              "inspect plan "
              "export "
              "doctor ");
}

TEST_F(HelpText, EachSubcommandCanPrintJson) {
    for (const CLI::App* const app : shown_subcommands(*app_)) {
        EXPECT_NE(app->get_option_no_throw("--json"), nullptr) << app->get_name();
    }
}

TEST(Wrap, BreaksBetweenWords) {
    EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
    EXPECT_EQ(wrap("immeasurable", 3), (std::vector<std::string>{"immeasurable"}));
    EXPECT_EQ(wrap("", 3), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace tensorpool::command
