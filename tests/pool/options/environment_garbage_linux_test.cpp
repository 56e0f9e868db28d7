// Environment variables with invalid values, and in set-user-id programs.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>

#include "pool/pool.hpp"

namespace tensorpool {
namespace {

// Whether an invalid value is reported, and whether an empty value counts as not set.
enum class Reads { strictly, unless_empty, silently };

struct Variable {
    const char* name;
    Reads reads = Reads::strictly;
};

// Every variable that the library reads.
constexpr Variable variables[] = {
    {"TENSORPOOL_INITIAL_CAPACITY"},
    {"TENSORPOOL_MAX_CAPACITY"},
    {"TENSORPOOL_MAX_ALLOCATION"},
    {"TENSORPOOL_GROWTH_STEP"},
    {"TENSORPOOL_GROWTH_FACTOR"},
    {"TENSORPOOL_GROWTH_FRACTION"},
    {"TENSORPOOL_RETAIN_BYTES"},
    {"TENSORPOOL_RETAIN_MS"},
    {"TENSORPOOL_RETAIN_BACKGROUND"},
    {"TENSORPOOL_HUGE_PAGES"},
    {"TENSORPOOL_NUMA"},
    {"TENSORPOOL_CHECKS"},
    {"TENSORPOOL_GUARD_SHARE"},
    {"TENSORPOOL_QUARANTINE_BYTES"},
    {"TENSORPOOL_BUDGETS", Reads::unless_empty},
    {"TENSORPOOL_ARENA_INITIAL_CAPACITY"},
    {"TENSORPOOL_ARENA_MAX_CAPACITY"},
    {"TENSORPOOL_ARENA_MAX_ALLOCATION"},
    {"TENSORPOOL_ARENA_GROWTH"},
    {"TENSORPOOL_ARENA_GROWTH_STEP"},
    {"TENSORPOOL_ARENA_GROWTH_FACTOR"},
    {"TENSORPOOL_ARENA_GROWTH_FRACTION"},
    {"TENSORPOOL_ARENA_RETAIN"},
    {"TENSORPOOL_ON_MISUSE"},
    {"TENSORPOOL_STATISTICS", Reads::unless_empty},
    {"TENSORPOOL_STATISTICS_DIR", Reads::unless_empty},
    {"TENSORPOOL_PROFILE", Reads::unless_empty},
    {"TENSORPOOL_REPORT", Reads::unless_empty},
    {"TENSORPOOL_TRACE", Reads::unless_empty},
    // Read only by a recording from the first call.
    {"TENSORPOOL_TRACE_STACKS", Reads::silently},
    // The name of a socket of `tensorpool run`, which may be gone.
    {"TENSORPOOL_OBSERVER", Reads::silently},
    // Read only by the interposer.
    {"TENSORPOOL_INTERPOSE_MIN", Reads::silently},
};

void use_library_with(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    MemoryPool pool(options_from_environment({}));
    pool.deallocate(pool.allocate(1000));
    Arena arena;
    (void)arena.allocate(1000);
}

const std::string values[] = {"",    "  ",         std::string(10'000, 'x'),    "\xFF\xFE", "-1",
                              "nan", "much\nmore", "99999999999999999999999999"};

/// Uses the library with each value, in a new child each time; this process never uses it itself.
[[noreturn]] void use_library_with_each_value(const char* name) {
    for (const std::string& value : values) {
        std::fprintf(stderr, "%d:\n", static_cast<int>(&value - values));
        const pid_t child = fork();
        if (child == 0) {
            use_library_with(name, value);
            std::_Exit(0);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0) std::_Exit(1);
    }
    std::_Exit(0);
}

class EnvironmentGarbageDeathTest : public ::testing::TestWithParam<Variable> {};

TEST_P(EnvironmentGarbageDeathTest, IsReportedInOneLineAndReplacedByTheDefault) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto& [name, reads] = GetParam();
    std::string expected;
    for (const std::string& value : values) {
        const bool is_silent =
            reads == Reads::silently || (reads == Reads::unless_empty && value.empty());
        expected += std::to_string(&value - values) + ":\n";
        if (!is_silent) expected += "tensorpool: " + std::string(name) + " [^\n]*\n";
    }
    EXPECT_EXIT(use_library_with_each_value(name), ::testing::ExitedWithCode(0),
                ::testing::MatchesRegex(expected));
}

INSTANTIATE_TEST_SUITE_P(Each, EnvironmentGarbageDeathTest, ::testing::ValuesIn(variables),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(EnvironmentVariables, AreAllInTheTable) {
    std::set<std::string> known;
    for (const Variable& variable : variables) known.insert(variable.name);
    // The macros of the library share the prefix, but none is a whole string literal.
    const std::regex literal("\"(TENSORPOOL_[A-Z_]+)\"");
    std::set<std::string> read;
    for (const auto& file : std::filesystem::recursive_directory_iterator(TENSORPOOL_LIB_FOLDER)) {
        if (file.path().extension() != ".cpp" && file.path().extension() != ".hpp") continue;
        std::ifstream in(file.path());
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        for (std::sregex_iterator found(text.begin(), text.end(), literal), end; found != end;
             ++found) {
            read.insert((*found)[1]);
        }
    }
    EXPECT_EQ(read, known);
}

// Run by the test below, in a copy of this program that belongs to another user.
TEST(SetUserIdProgram, DISABLED_PrintsWhatItReads) {
    const PoolOptions options = options_from_environment({});
    std::printf("growth step %zu\n", options.growth.step);
}

TEST(SetUserIdProgram, IgnoresTheEnvironment) {
    if (geteuid() != 0) GTEST_SKIP() << "only root may give a program to another user";
    char folder[] = "/tmp/tensorpool-set-user-id-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string copy = std::string(folder) + "/program";
    std::filesystem::copy_file("/proc/self/exe", copy);
    ASSERT_EQ(chmod(folder, 0755), 0);
    const auto step_read = [&](mode_t mode) {
        EXPECT_EQ(chown(copy.c_str(), 1, 1), 0);
        EXPECT_EQ(chmod(copy.c_str(), mode), 0);
        const std::string command =
            "cd / && GTEST_TOTAL_SHARDS=1 GTEST_SHARD_INDEX=0 TENSORPOOL_GROWTH_STEP=12345 setpriv "
            "--reuid 65534 --regid 65534 "
            "--clear-groups " +
            copy +
            " --gtest_also_run_disabled_tests --gtest_filter=*DISABLED_PrintsWhatItReads 2>&1";
        std::string text;
        FILE* const output = popen(command.c_str(), "r");
        for (int c; (c = std::fgetc(output)) != EOF;) text += static_cast<char>(c);
        pclose(output);
        const std::size_t at = text.find("growth step ");
        return at == std::string::npos ? text : text.substr(at + 12, text.find('\n', at) - at - 12);
    };
    EXPECT_EQ(step_read(0755), "12345");
    EXPECT_EQ(step_read(04755), std::to_string(PoolOptions().growth.step));
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tensorpool
