/// @file
/// Tests the manual and the completion with the programs that read them.

#include <gtest/gtest.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>

#include "command.hpp"
#include "help/help_text.hpp"
#include "support/run_program.hpp"

namespace tensorpool::command {
namespace {

namespace fs = std::filesystem;
using testing::ProgramResult;
using testing::run_program;

class Manual : public ::testing::Test {
protected:
    Manual() : folder_(fs::temp_directory_path() / ("manual" + std::to_string(getpid()))) {
        fs::create_directory(folder_);
    }
    ~Manual() override { fs::remove_all(folder_); }
    void SetUp() override {
        const ProgramResult result = run_program(TENSORPOOL_PROGRAM, {"manual", folder_});
        ASSERT_EQ(result.exit_code, 0) << result.errors;
    }

    /// Returns the completions that bash offers for the last of these arguments.
    std::string completions(const std::string& words, int count,
                            const std::string& before = ":") const {
        return run_program(
                   "/bin/bash",
                   {"-c", before + "; source " + (folder_ / "tensorpool.bash").string() +
                              "; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(count) +
                              "; _tensorpool; echo \"${COMPREPLY[*]}\""})
            .output;
    }

    fs::path folder_;
};

TEST_F(Manual, HasAPageForEachSubcommand) {
    Settings settings;
    const auto app = declare(settings);
    for (const CLI::App* const sub : shown_subcommands(*app)) {
        EXPECT_TRUE(fs::exists(folder_ / ("tensorpool-" + sub->get_name() + ".1")))
            << sub->get_name();
    }
    EXPECT_TRUE(fs::exists(folder_ / "tensorpool.1"));
    EXPECT_TRUE(fs::exists(folder_ / "tensorpool-metrics.7"));
}

TEST_F(Manual, GroffReportsNoProblem) {
    if (access("/usr/bin/groff", X_OK) != 0) GTEST_SKIP() << "needs groff: install groff-base";
    for (const fs::directory_entry& page : fs::directory_iterator(folder_)) {
        if (page.path().extension() == ".bash") continue;
        const ProgramResult result =
            run_program("/usr/bin/groff", {"-man", "-ww", "-z", "-Tutf8", page.path()});
        EXPECT_EQ(result.errors, "") << page.path();
        EXPECT_EQ(result.exit_code, 0);
    }
}

TEST_F(Manual, DescribesEachOptionAndEachMetric) {
    const auto text_of = [&](const char* page) {
        std::ifstream file(folder_ / page);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    EXPECT_NE(text_of("tensorpool-stat.1").find("\\-i, \\-\\-interval S"), std::string::npos);
    EXPECT_NE(text_of("tensorpool-stat.1").find("The columns are"), std::string::npos);
    EXPECT_NE(text_of("tensorpool-metrics.7").find("in_use_bytes"), std::string::npos);
}

TEST_F(Manual, BashCompletesSubcommandsAndOptions) {
    EXPECT_EQ(completions("tensorpool st", 1), "stat\n");
    EXPECT_EQ(completions("tensorpool top --na", 2), "--name\n");
    EXPECT_EQ(completions("tensorpool stat --int", 2), "--interval\n");
    EXPECT_EQ(completions("tensorpool stat -i ''", 3), "\n");
    EXPECT_EQ(completions("tensorpool serve --token-file /etc/passw", 3).substr(0, 11),
              "/etc/passwd");
}

/// The output of `ls` with a process whose name a shell would execute.
constexpr const char* listing =
    "tensorpool() { printf '%s\\n' '{\"process\":12,\"name\":\"train\",\"readable\":true}' "
    "'{\"process\":13,\"name\":\"$(echo trap >&2)\",\"readable\":true}'; }";

TEST_F(Manual, BashCompletesProcessesExceptUnsafeNames) {
    EXPECT_EQ(completions("tensorpool top --pid ''", 3, listing), "12 13\n");
    EXPECT_EQ(completions("tensorpool top --name ''", 3, listing), "train\n");
}

TEST_F(Manual, AMissingFolderIsReported) {
    const ProgramResult result = run_program(TENSORPOOL_PROGRAM, {"manual", "/nowhere"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.errors.find("/nowhere/tensorpool.1 cannot be written"), std::string::npos);
}

TEST(Roff, TextIsEscaped) {
    EXPECT_EQ(roff(".TH 'x'"), "\\&.TH \\(aqx\\(aq");
    EXPECT_EQ(roff("a\\b --c `d`"), "a\\eb \\-\\-c \\(gad\\(ga");
}

TEST(Roff, ParagraphsAndExamplesAreFormatted) {
    EXPECT_EQ(paragraphs("one\ntwo\n\nthree\n  four\nfive"),
              "one\ntwo\n.PP\nthree\n.PP\n.RS 2\n.nf\nfour\n.fi\n.RE\nfive\n");
}

}  // namespace
}  // namespace tensorpool::command
