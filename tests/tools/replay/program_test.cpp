/// @file
/// Tests the program itself with an RMM log.

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/run_program.hpp"

namespace tensorpool::command::replay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::ProgramResult;

/// Two threads that free each other's blocks.
constexpr const char* two_threads =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "7,10:00:00.000001,allocate,0x1000,1000000,0x0\n"
    "8,10:00:00.000002,allocate,0x200000,3000,0x0\n"
    "8,10:00:00.000003,free,0x1000,1000000,0x0\n"
    "7,10:00:00.000004,allocate,0x1000,500000,0x0\n"
    "7,10:00:00.000005,free,0x1000,500000,0x0\n"
    "7,10:00:00.000006,free,0x200000,3000,0x0\n";

class ReplayProgram : public ::testing::Test {
protected:
    ReplayProgram()
        : file_(fs::temp_directory_path() / ("replayed" + std::to_string(getpid()) + ".csv")) {
        write(two_threads);
    }
    ~ReplayProgram() override { fs::remove(file_); }

    void write(const std::string& text) { std::ofstream(file_) << text; }
    ProgramResult replay(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"replay", file_});
        return testing::run_program(TENSORPOOL_PROGRAM, std::move(arguments));
    }
    void expect_refusal(std::vector<std::string> arguments, int code, const std::string& part) {
        const ProgramResult result = replay(std::move(arguments));
        EXPECT_EQ(result.exit_code, code) << result.errors;
        EXPECT_EQ(result.output, "");
        EXPECT_NE(result.errors.find(part), std::string::npos) << result.errors;
    }

    fs::path file_;
};

TEST_F(ReplayProgram, ReplaysWithAllAvailableAllocators) {
    const ProgramResult result = replay({"--json", "--rounds", "1"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    std::istringstream lines(result.output);
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(Json::parse(line)["most_alive_bytes"], 1'003'000) << line;
    std::string allocators;
    while (std::getline(lines, line)) {
        const Json allocator = Json::parse(line);
        const Json& round = allocator["each_round"][0];
        EXPECT_EQ(round["allocations"], 3) << line;
        EXPECT_EQ(round["deallocations"], 3) << line;
        allocators += allocator["contender"].get<std::string>() + ' ';
    }
    for (const std::string name :
         {"none", "pool", "glibc", "tcmalloc", "jemalloc", "jemalloc-tuned", "mimalloc"}) {
        const bool left_out =
            result.errors.find("tensorpool: " + name + " is left out: ") != std::string::npos;
        EXPECT_NE(allocators.find(name + ' ') != std::string::npos, left_out) << result.errors;
    }
}

TEST_F(ReplayProgram, PrintsATable) {
    const ProgramResult result =
        replay({"--against", "none,pool", "--rounds", "2", "--touch", "check"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    for (const char* const part : {"2 threads", "medians of 2 rounds", "CONTENDER", "TIME:POOL"}) {
        EXPECT_NE(result.output.find(part), std::string::npos) << result.output;
    }
}

TEST_F(ReplayProgram, ReplaysByAPlanOnRequest) {
    const ProgramResult result =
        replay({"--against", "plan,pool", "--rounds", "1", "--touch", "all"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("\na plan of all blocks needs "), std::string::npos)
        << result.output;
    EXPECT_NE(result.output.find("\nplan "), std::string::npos) << result.output;
}

TEST_F(ReplayProgram, ComparesPoolOptions) {
    const ProgramResult result =
        replay({"--against", "pool,pool:retain_ms=0", "--option", "huge_pages=never"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("pool:retain_ms=0 "), std::string::npos) << result.output;
}

TEST_F(ReplayProgram, WrongUsageListsTheChoices) {
    expect_refusal({"--against", "hoard"}, 2, "there are none, plan, pool, glibc");
    expect_refusal({"--against", "pool", "--option", "keep=1"}, 2, "there are initial_capacity");
    expect_refusal({"--against", "pool", "--option", "retain=much"}, 2, "expected a size");
    expect_refusal({"--touch", "some"}, 2, "some");
    expect_refusal({"--rounds", "0"}, 2, "rounds");
    expect_refusal({"--process", "99", "--against", "none"}, 2, "no process 99");
}

TEST_F(ReplayProgram, FailsForFilesThatCannotBeReplayed) {
    write("Thread,Time,Action,Pointer,Size,Stream\n");
    expect_refusal({"--against", "none"}, 1, "nothing to replay");
    write("nonsense");
    expect_refusal({"--against", "none"}, 1, "byte 0");
    write(
        "Thread,Time,Action,Pointer,Size,Stream\n"
        "7,10:00:00.000001,allocate,0x1000,70000000000000,0x0\n");
    expect_refusal({"--against", "none"}, 1, "are available");
    fs::remove(file_);
    expect_refusal({"--against", "none"}, 1, file_.filename());
}

}  // namespace
}  // namespace tensorpool::command::replay
