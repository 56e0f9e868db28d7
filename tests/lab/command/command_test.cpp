/// @file
/// Checks that a subcommand and an option need nothing but what greet/ shows.

#include "command.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tools/temporary_folder.hpp"

namespace tensorpool::command {
namespace {

struct Printed {
    int status;
    std::string text;
};

Printed run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "tensorpool");
    ::testing::internal::CaptureStdout();
    const int status = run_command(static_cast<int>(arguments.size()), arguments.data());
    return {status, ::testing::internal::GetCapturedStdout()};
}

std::string content(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

TEST(SampleSubcommand, Runs) {
    const Printed printed = run({"greet", "--to", "you"});
    EXPECT_EQ(printed.status, 0);
    EXPECT_EQ(printed.text, "Hello, you!\n");
}

TEST(SampleSubcommand, HasAnOption) {
    EXPECT_EQ(run({"greet", "--loud"}).text, "HELLO, WORLD!\n");
}

TEST(SampleSubcommand, IsInTheHelpAndHasOne) {
    EXPECT_NE(run({"--help"}).text.find("\n  greet                Print a greeting\n"),
              std::string::npos);
    const std::string help = run({"greet", "--help"}).text;
    EXPECT_NE(help.find("\n  --to NAME            The name to greet (world)\n"), std::string::npos);
    EXPECT_NE(help.find("\n  --loud               Greet in capitals\n"), std::string::npos);
}

TEST(SampleSubcommand, HasAManualPageAndACompletion) {
    const photos::TemporaryFolder folder;
    EXPECT_EQ(run({"manual", folder.path().c_str()}).status, 0);
    const std::string page = content(folder.path() / "tensorpool-greet.1");
    EXPECT_NE(page.find("Prints one line."), std::string::npos) << page;
    EXPECT_NE(page.find("\\-\\-loud"), std::string::npos) << page;
    const std::string completion = content(folder.path() / "tensorpool.bash");
    EXPECT_NE(completion.find("greet) words=\"--to --loud -h --help\""), std::string::npos)
        << completion;
}

}  // namespace
}  // namespace tensorpool::command
