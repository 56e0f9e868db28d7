/// @file
/// Tests the command with a process that has pools.

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "holder_process.hpp"
#include "started_program.hpp"
#include "support/process_metrics.hpp"
#include "support/run_program.hpp"

namespace tensorpool::command {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::ProgramResult;
using testing::run_program;

ProgramResult run(std::vector<std::string> arguments, const testing::Variables& variables = {}) {
    return run_program(TENSORPOOL_PROGRAM, std::move(arguments), variables);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

/// Checks that a failure says what to do next.
void expect_refusal(const ProgramResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.exit_code, code) << result.errors;
    EXPECT_EQ(result.output, "");
    EXPECT_TRUE(result.errors.starts_with("tensorpool")) << result.errors;
    EXPECT_NE(result.errors.find(part), std::string::npos) << result.errors;
}

/// Gives the process with pools a unique name, in a folder of its own.
class Program : public ::testing::Test {
protected:
    Program()
        : name_("held" + std::to_string(getpid())), folder_(fs::temp_directory_path() / name_) {
        fs::create_directory(folder_);
        fs::create_symlink(TENSORPOOL_HOLDER, folder_ / name_);
    }
    ~Program() override { fs::remove_all(folder_); }

    std::string path() const { return folder_ / name_; }

    std::string name_;
    fs::path folder_;
};

TEST(FullStandardError, ChangesNoExitStatus) {
    const auto code_of = [](const std::string& arguments) {
        return run_program("/bin/sh", {"-c", TENSORPOOL_PROGRAM " " + arguments + " 2>/dev/full"})
            .exit_code;
    };
    EXPECT_EQ(code_of("stat --nonsense"), run({"stat", "--nonsense"}).exit_code);
    EXPECT_EQ(code_of("inspect /nowhere"), run({"inspect", "/nowhere"}).exit_code);
}

TEST_F(Program, ListsTheProcess) {
    const HolderProcess holder(path());
    const ProgramResult text = run({"ls"});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_NE(text.output.find(name_ + ' '), std::string::npos) << text.output;

    bool found = false;
    for (const std::string& line : lines_of(run({"ls", "--json"}).output)) {
        const Json process = Json::parse(line);
        if (process["name"] != name_) continue;
        found = true;
        EXPECT_EQ(process["pools"], 2);
        EXPECT_EQ(process["arenas"], 1);
        EXPECT_EQ(process["devices"], 1);
        EXPECT_EQ(process["device_in_use_bytes"], 3u << 20);
        EXPECT_GT(process["in_use_bytes"], 9'000'000);
    }
    EXPECT_TRUE(found);
}

TEST_F(Program, AReaderIsNotListed) {
    const HolderProcess holder(path());
    StartedProgram reader({TENSORPOOL_PROGRAM, "stat", "--name", name_, "--json"});
    EXPECT_NE(reader.read_line(), "");
    const std::string number = std::to_string(reader.process());
    for (const std::string& line : lines_of(run({"ls", "--json"}).output)) {
        EXPECT_NE(Json::parse(line)["process"].dump(), number) << line;
    }
}

TEST_F(Program, ListingRemovesFilesOfEndedProcesses) {
    const fs::path statistics = folder_ / "statistics";
    fs::create_directory(statistics);
    fs::permissions(statistics, fs::perms::owner_all);
    setenv("TENSORPOOL_STATISTICS_DIR", statistics.c_str(), 1);
    HolderProcess holder(path());
    unsetenv("TENSORPOOL_STATISTICS_DIR");
    const testing::Variables variables = {{"TENSORPOOL_STATISTICS_DIR", statistics}};
    const std::string number = holder.number();
    EXPECT_TRUE(fs::exists(statistics / number));
    EXPECT_NE(run({"ls"}, variables).output.find(name_), std::string::npos);
    EXPECT_TRUE(fs::exists(statistics / number));
    holder.kill();
    run({"ls"}, variables);
    EXPECT_FALSE(fs::exists(statistics / number));
}

TEST_F(Program, PrintsALinePerInterval) {
    const HolderProcess holder(path());
    const ProgramResult text = run({"stat", "--name", name_, "-i", "0.02", "-n", "3"});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_EQ(lines_of(text.output).size(), 4u) << text.output;
    const ProgramResult json = run({"stat", "--pid", holder.number(), "-n", "1", "--json"});
    EXPECT_EQ(Json::parse(json.output)["allocations"], 1002) << json.output;
    const ProgramResult pool =
        run({"stat", "--name", name_, "--pool", "second", "-n", "1", "--json"});
    EXPECT_EQ(Json::parse(pool.output)["allocations"], 1) << pool.output;
    const ProgramResult bytes = run({"stat", "--name", name_, "-n", "1", "--bytes"});
    EXPECT_EQ(bytes.output.find("MiB"), std::string::npos) << bytes.output;
}

TEST_F(Program, PrintsDeviceMemoryWithPyTorchsNames) {
    const HolderProcess holder(path());
    const ProgramResult text = run({"stat", "--devices", "--name", name_, "-n", "1"});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_TRUE(text.output.starts_with("activations on cpu:0\nNAME ")) << text.output;
    EXPECT_NE(
        text.output.find("in_use_bytes             allocated_bytes.all.current        3.00 MiB"),
        std::string::npos)
        << text.output;
    const ProgramResult json =
        run({"stat", "--devices", "--name", name_, "-n", "2", "-i", "0.02", "--json"});
    ASSERT_EQ(lines_of(json.output).size(), 2u) << json.output << json.errors;
    const Json device = Json::parse(lines_of(json.output)[1])["devices"][0];
    EXPECT_EQ(device["name"], "activations");
    EXPECT_EQ(device["in_use_bytes"], 3u << 20);
    EXPECT_GE(device["capacity_bytes"], 3u << 20);
}

TEST_F(Program, PrintsThePeaksOfPlannedArenasBesideTheLowerBound) {
    HolderProcess holder(path());
    EXPECT_EQ(run({"stat", "--planned", "--name", name_, "-n", "1"}).output,
              "no planned arena now\n");
    holder.order("plan");
    const ProgramResult text = run({"stat", "--planned", "--name", name_, "-n", "1"});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_NE(text.output.find("\nstep         serving  3.00 MiB"), std::string::npos)
        << text.output;
    const ProgramResult json =
        run({"stat", "--planned", "--name", name_, "-n", "2", "-i", "0.02", "--json"});
    ASSERT_EQ(lines_of(json.output).size(), 2u) << json.output << json.errors;
    const Json planned = Json::parse(lines_of(json.output)[1])["planned"][0];
    EXPECT_EQ(planned["name"], "step");
    EXPECT_EQ(planned["state"], "serving");
    EXPECT_EQ(planned["lower_bound_bytes"], 3u << 20);
    EXPECT_EQ(planned["plan_peak_bytes"], 3u << 20);
    EXPECT_EQ(planned["served"], 2);
    EXPECT_EQ(planned["from_pool"], 2);
    const ProgramResult events = run({"events", "--name", name_});
    EXPECT_NE(events.output.find("plan       step  3 MiB"), std::string::npos) << events.output;
}

TEST_F(Program, PrintsTheTreeOfBudgets) {
    HolderProcess holder(path());
    EXPECT_EQ(run({"stat", "--budgets", "--name", name_, "-n", "1"}).output,
              "no budget and nothing at rest now\n");
    holder.order("budget");
    const ProgramResult text = run({"stat", "--budgets", "--name", name_, "-n", "1"});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_NE(text.output.find("\n  phases       6.00 MiB 8.00 MiB 75.0% [########  ]"),
              std::string::npos)
        << text.output;
    const ProgramResult json =
        run({"stat", "--budgets", "--name", name_, "-n", "2", "-i", "0.02", "--json"});
    ASSERT_EQ(lines_of(json.output).size(), 2u) << json.output << json.errors;
    const Json budgets = Json::parse(lines_of(json.output)[1])["budgets"];
    EXPECT_EQ(budgets[0]["in_use_bytes"], 6u << 20);
    EXPECT_EQ(budgets[1]["name"], "phases");
    EXPECT_EQ(budgets[1]["parent"], budgets[0]["id"]);
    EXPECT_EQ(budgets[1]["refusals"], 1);
}

TEST_F(Program, PrintsEvents) {
    const HolderProcess holder(path());
    const ProgramResult text = run({"events", "--name", name_});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_NE(text.output.find("growth"), std::string::npos) << text.output;
    const ProgramResult last = run({"events", "--name", name_, "-n", "1", "--json"});
    ASSERT_EQ(lines_of(last.output).size(), 1u) << last.output;
    const Json entry = Json::parse(last.output);
    EXPECT_TRUE(entry["kind"] == "mark" || entry["kind"] == "scope") << last.output;
}

TEST_F(Program, PrintsAllDataAsJson) {
    const HolderProcess holder(path());
    const ProgramResult result = run({"top", "--name", name_, "--json", "-i", "0.02", "-n", "2"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    ASSERT_EQ(lines_of(result.output).size(), 2u);
    const Json sample = Json::parse(lines_of(result.output)[1]);
    EXPECT_EQ(sample["snapshot"]["pools"][0]["name"], "first");
    EXPECT_GT(sample["rates"]["seconds"], 0);
}

TEST_F(Program, FollowsEventsUntilTheEnd) {
    HolderProcess holder(path());
    StartedProgram events({TENSORPOOL_PROGRAM, "events", "--name", name_, "--follow"});
    while (events.read_line().find("made") == std::string::npos) {
        ASSERT_FALSE(::testing::Test::HasFailure());
    }
    holder.order("mark here I am");
    std::string line = events.read_line();
    while (!line.empty() && line.find("here I am") == std::string::npos) line = events.read_line();
    EXPECT_NE(line.find("mark"), std::string::npos) << line;
    holder.kill();
    EXPECT_EQ(events.wait(), 3);
    EXPECT_NE(events.errors().find("has ended"), std::string::npos) << events.errors();
}

TEST_F(Program, AMarkCannotControlTheTerminal) {
    HolderProcess holder(path());
    holder.order("mark \x1b[2J\xc2\x9bx");
    const std::string output = run({"events", "--name", name_}).output;
    EXPECT_EQ(output.find('\x1b'), std::string::npos);
    EXPECT_EQ(output.find('\x9b'), std::string::npos);
}

TEST_F(Program, EndsWithItsProcess) {
    HolderProcess holder(path());
    StartedProgram lines({TENSORPOOL_PROGRAM, "stat", "--name", name_, "-i", "0.02"});
    EXPECT_NE(lines.read_line().find("capacity"), std::string::npos);
    EXPECT_NE(lines.read_line(), "");
    holder.kill();
    EXPECT_EQ(lines.wait(), 3);
    EXPECT_NE(lines.errors().find("ended"), std::string::npos) << lines.errors();
}

TEST_F(Program, WaitsForAProcessAndForTheNextOne) {
    StartedProgram lines(
        {TENSORPOOL_PROGRAM, "stat", "--name", name_, "--wait", "-i", "0.02", "--json"});
    std::string seen;
    for (int round = 0; round < 2; ++round) {
        HolderProcess holder(path());
        const std::string wanted = "\"process\":" + holder.number();
        std::string line = lines.read_line();
        while (!line.empty() && line.find(wanted) == std::string::npos) line = lines.read_line();
        EXPECT_NE(line, "") << lines.errors();
        holder.kill();
    }
}

TEST_F(Program, AnAmbiguousNameListsTheMatches) {
    const HolderProcess one(path());
    const HolderProcess two(path());
    const ProgramResult result = run({"stat", "--name", name_});
    expect_refusal(result, 2, "choose one with --pid");
    EXPECT_NE(result.errors.find(one.number()), std::string::npos);
    EXPECT_NE(result.errors.find(two.number()), std::string::npos);
}

TEST_F(Program, AMissingProcessHasItsOwnStatus) {
    expect_refusal(run({"stat", "--name", name_}), 3, "tensorpool ls");
    expect_refusal(run({"events", "--pid", "4194304"}), 3, "4194304");
    expect_refusal(run({"top", "--json", "--pid", "4194304"}), 3, "4194304");
}

TEST_F(Program, AMissingPoolIsReported) {
    const HolderProcess holder(path());
    expect_refusal(run({"stat", "--name", name_, "--pool", "third"}), 1, "has no pool named third");
}

TEST_F(Program, WrongUsageRefersToTheHelp) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{},
                                               {"nonsense"},
                                               {"--nonsense"},
                                               {"stat", "--nonsense"},
                                               {"stat", "-i", "0"},
                                               {"stat", "-n", "-1"},
                                               {"stat", "--pid", "0"},
                                               {"stat", "--pid", "1", "--name", "x"},
                                               {"top", "--wait"},
                                               {"ls", "extra"}}) {
        expect_refusal(run(arguments), 2, "--help` lists the options");
    }
    EXPECT_NE(run({"nonsense"}).errors.find("no subcommand or option nonsense"), std::string::npos);
}

TEST_F(Program, TrimsAProcessThatWorks) {
    HolderProcess holder(path());
    std::atomic<bool> is_over = false;
    std::thread works([&] {
        while (!is_over) holder.order("global");
    });
    const ProgramResult result = run({"trim", "--json", "--name", name_, "--for", "1min"});
    is_over = true;
    works.join();
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    const Json answer = Json::parse(result.output);
    EXPECT_EQ(answer["answered"], true);
    EXPECT_GT(answer["trimmed_bytes"], 0);
}

TEST_F(Program, AnIdleProcessIsNotReportedAsTrimmed) {
    const HolderProcess holder(path());
    expect_refusal(run({"trim", "--name", name_, "--for", "10ms"}), 1,
                   "TENSORPOOL_RETAIN_BACKGROUND=on");
}

TEST_F(Program, TrimsAnIdleProcessWithTheBackgroundTrimmer) {
    ::setenv("TENSORPOOL_RETAIN_BACKGROUND", "on", 1);
    HolderProcess holder(path());
    ::unsetenv("TENSORPOOL_RETAIN_BACKGROUND");
    holder.order("global");
    const ProgramResult result = run({"trim", "--json", "--name", name_, "--for", "1min"});
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_GE(Json::parse(result.output)["trimmed_bytes"], 32u << 20);
}

TEST_F(Program, ExplainsTheResidentMemoryAndWhatTrimReturns) {
    ::setenv("TENSORPOOL_RETAIN_BACKGROUND", "on", 1);
    HolderProcess holder(path());
    ::unsetenv("TENSORPOOL_RETAIN_BACKGROUND");
    holder.order("global");
    const auto explanation = [&] {
        const ProgramResult result = run({"explain", "--json", "--name", name_});
        EXPECT_EQ(result.exit_code, 0) << result.errors;
        return Json::parse(result.output);
    };
    const Json before = explanation();
    std::uint64_t bytes = 0, back = 0;
    for (const Json& row : before["rows"]) {
        bytes += row["bytes"].get<std::uint64_t>();
        back += row["back_bytes"].get<std::uint64_t>();
    }
    EXPECT_EQ(bytes, before["resident_bytes"]);
    if (testing::sanitized()) return;  // what else the process holds changes
    EXPECT_GT(back, 30u << 20);
    ASSERT_EQ(run({"trim", "--name", name_, "--for", "1min"}).exit_code, 0);
    const auto now = explanation()["resident_bytes"].get<std::uint64_t>();
    const auto returned = static_cast<double>(bytes - std::min(bytes, now));
    EXPECT_NEAR(returned / static_cast<double>(back), 1, 0.05);
}

TEST_F(Program, TrimReturnsWhatEachRowOfExplainSays) {
    ::setenv("TENSORPOOL_RETAIN_BACKGROUND", "on", 1);
    ::setenv("TENSORPOOL_RETAIN_MS", "3600000", 1);
    HolderProcess holder(path());
    ::unsetenv("TENSORPOOL_RETAIN_BACKGROUND");
    ::unsetenv("TENSORPOOL_RETAIN_MS");
    holder.order("fragment");
    const auto explanation = [&] {
        const ProgramResult result = run({"explain", "--json", "--name", name_});
        EXPECT_EQ(result.exit_code, 0) << result.errors;
        return Json::parse(result.output);
    };
    const Json before = explanation();
    const std::uint64_t resident = before["resident_bytes"];
    ASSERT_EQ(run({"trim", "--name", name_, "--for", "1min"}).exit_code, 0);
    const Json after = explanation();
    if (testing::sanitized()) return;  // what else the process holds changes
    const auto bytes_after = [&](const Json& what) {
        for (const Json& row : after["rows"]) {
            if (row["what"] == what) return row["bytes"].get<std::uint64_t>();
        }
        return std::uint64_t{0};
    };
    std::uint64_t back = 0;
    std::uint64_t unnamed = 0;
    for (const Json& row : before["rows"]) {
        const std::string what = row["what"];
        if (what.starts_with("pools: ") || what == "other mappings") {
            unnamed += row["bytes"].get<std::uint64_t>();
        }
        const std::uint64_t of_row = row["back_bytes"];
        if (of_row < 1u << 20) continue;
        back += of_row;
        const auto returned = static_cast<double>(row["bytes"].get<std::uint64_t>()) -
                              static_cast<double>(bytes_after(row["what"]));
        EXPECT_NEAR(returned / static_cast<double>(of_row), 1, 0.05) << row << after;
    }
    const auto returned = static_cast<double>(resident) - after["resident_bytes"].get<double>();
    EXPECT_NEAR(returned / static_cast<double>(back), 1, 0.05) << before << after;
    EXPECT_LE(unnamed * 50, resident) << before;
}

TEST_F(Program, TopWithoutATerminalNamesAlternatives) {
    const HolderProcess holder(path());
    expect_refusal(run({"top", "--name", name_}), 2, "tensorpool stat");
}

TEST_F(Program, HelpAndVersionSucceed) {
    EXPECT_EQ(run({"--help"}).exit_code, 0);
    EXPECT_EQ(run({"--version"}).output.substr(0, 11), "tensorpool ");
    EXPECT_NE(run({"top", "--help"}).output.find("Usage: tensorpool top"), std::string::npos);
}

TEST_F(Program, TheStatusOfDoctorReflectsItsFindings) {
    const ProgramResult result = run({"doctor", "--json"});
    bool wrong = false;
    for (const std::string& line : lines_of(result.output)) {
        wrong = wrong || Json::parse(line)["verdict"] == "wrong";
    }
    EXPECT_EQ(result.exit_code, wrong ? 1 : 0) << result.output;
    const testing::Variables off = {{"TENSORPOOL_STATISTICS", "off"}};
    EXPECT_EQ(run({"doctor"}, off).exit_code, 1);
}

TEST_F(Program, AFullDiskIsReported) {
    const HolderProcess holder(path());
    const ProgramResult result = run_program(
        "/bin/sh", {"-c", "exec " TENSORPOOL_PROGRAM " stat -n 1 --name " + name_ + " >/dev/full"});
    expect_refusal(result, 1, "standard output cannot be written");
}

}  // namespace
}  // namespace tensorpool::command
