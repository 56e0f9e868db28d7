/// @file
/// Tests the arguments of `tensorpool run`, and the end of the program.

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/trace/recording.hpp"
#include "tools/run/ran_program.hpp"
#include "tools/temporary_folder.hpp"
#include "tools/tensorpool/started_program.hpp"

namespace tensorpool::command::run {
namespace {

using Json = nlohmann::json;
using testing::ProgramResult;

std::vector<Json> json_lines(const std::string& text) {
    std::istringstream stream(text);
    std::vector<Json> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
}

/// Runs a script in a shell, and returns what the shell observes.
ProgramResult shell(const std::string& script) {
    return testing::run_program("/bin/sh", {"-c", script});
}

const std::string run_none = std::string(TENSORPOOL_PROGRAM) + " run --with none ";

TEST(Start, KeepsTheExitCode) {
    EXPECT_EQ(ran({"--with", "none", "--", "/bin/true"}).exit_code, 0);
    EXPECT_EQ(ran({"--with", "none", "--", "/bin/sh", "-c", "exit 77"}).exit_code, 77);
    EXPECT_EQ(ran({"--with", "none", "/bin/sh", "-c", "exit 3"}).exit_code, 3);
}

TEST(Start, EndsByTheSignalThatEndedTheProgram) {
    for (const int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGINT, SIGUSR1}) {
        const std::string number = std::to_string(signal);
        const ProgramResult seen =
            shell(run_none + "-- /bin/sh -c 'kill -" + number + " $$' 2>/dev/null; echo $?");
        EXPECT_EQ(seen.output, std::to_string(128 + signal) + "\n");
    }
}

TEST(Start, ArgumentsReachTheProgramUnchanged) {
    const ProgramResult result = ran({"--with", "none", "--", "/usr/bin/printf", "%s|", "[a,b]", "",
                                      "--limit", "--", "-x", "%%", "\xff"});
    EXPECT_EQ(result.output, "[a,b]||--limit|--|-x|%%|\xff|") << result.errors;
}

TEST(Start, EnablesTheBackgroundTrimmerUnlessTheEnvironmentSetsIt) {
    const std::string print = "-- /bin/sh -c 'printf %s $TENSORPOOL_RETAIN_BACKGROUND' 2>/dev/null";
    EXPECT_EQ(shell("unset TENSORPOOL_RETAIN_BACKGROUND; " + run_none + print).output, "auto");
    EXPECT_EQ(shell("TENSORPOOL_RETAIN_BACKGROUND=off " + run_none + print).output, "off");
}

TEST(Start, TheProgramKeepsItsStreamsAndTheReportGoesToStandardError) {
    const ProgramResult result =
        shell("printf in | " + run_none + "-- /bin/sh -c 'cat; echo out; echo err >&2'");
    EXPECT_EQ(result.output, "inout\n");
    EXPECT_TRUE(has(result.errors, "err\ntensorpool run: /bin/sh ended with code 0\n"))
        << result.errors;
}

TEST(Start, TheReportGoesToTheGivenFile) {
    const photos::TemporaryFolder folder;
    const std::string path = folder.path() / "report";
    EXPECT_EQ(ran({"--with", "none", "--report", path, "--", "/bin/true"}).errors, "");
    std::stringstream report;
    report << std::ifstream(path).rdbuf();
    EXPECT_TRUE(has(report.str(), "pools    none used")) << report.str();
    EXPECT_EQ(ran({"--with", "none", "--report", "none", "--", "/bin/true"}).errors, "");
    const ProgramResult refused =
        ran({"--with", "none", "--report", "/nowhere/at/all", "--", "/bin/echo", "began"});
    EXPECT_EQ(refused.exit_code, 125);
    EXPECT_EQ(refused.output, "");
    EXPECT_TRUE(has(refused.errors, "--report /nowhere/at/all cannot be written"))
        << refused.errors;
}

TEST(Start, AClosedStreamStaysClosed) {
    const photos::TemporaryFolder folder;
    const std::string trace = folder.path() / "trace";
    const std::string look = "/bin/sh -c 'ls /proc/self/fd' 0<&- 2>&-";
    const ProgramResult under = shell(run_none + "--trace " + trace + " -- " + look);
    EXPECT_EQ(under.output, shell(look).output);
    shell(run_none + "--trace " + trace + " -- " + TENSORPOOL_SUBJECT + " use 10 0<&- 2>&-");
    EXPECT_EQ(trace::read_recording(trace).processes.size(), 1U);  // it contains no report
}

TEST(Start, ReportsProgramsThatCannotBeRun) {
    const ProgramResult missing = ran({"--with", "none", "--", "no-such-program-at-all"});
    EXPECT_EQ(missing.exit_code, 127);
    EXPECT_TRUE(has(missing.errors, "not found in any folder of PATH")) << missing.errors;
    EXPECT_EQ(ran({"--with", "none", "--", "/nowhere/program"}).exit_code, 127);
    const ProgramResult folder = ran({"--with", "none", "--", "/usr"});
    EXPECT_EQ(folder.exit_code, 126);
    EXPECT_TRUE(has(folder.errors, "/usr cannot be run: Permission denied")) << folder.errors;
}

TEST(Start, ReportsWrongArguments) {
    const auto refused = [](std::vector<std::string> arguments, const std::string& part) {
        const ProgramResult result = ran(std::move(arguments));
        EXPECT_EQ(result.exit_code, 2) << result.errors;
        EXPECT_TRUE(has(result.errors, part)) << result.errors;
        EXPECT_EQ(result.output, "");
    };
    refused({}, "no program given");
    refused({"--"}, "no program given");
    refused({"--limt", "2GiB", "--", "/bin/true"}, "unknown option --limt");
    refused({"--limit", "2GB", "--", "/bin/true"}, "'2GB' is not a size; expected a size such as");
    refused({"--limit", "0", "--", "/bin/true"}, "'0' is not a size");
    refused({"--with", "malloc,nothing", "--", "/bin/true"}, "--with nothing: expected malloc");
    refused({"--with", "none", "--stacks", "1MiB", "--", "/bin/true"}, "--trace");
    refused({"--with", "none", "--interpose-min", "1MiB", "--", "/bin/true"},
            "needs the part malloc");
}

TEST(Start, TheProgramStartsWithUnchangedDescriptorsAndSignals) {
    const std::string look =
        "'ls /proc/self/fd | wc -l; ulimit -n; grep -E \"^Sig(Blk|Ign)\" /proc/self/status'";
    const std::string begin = "ulimit -n 900; trap '' USR2; ";
    const ProgramResult alone = shell(begin + "/bin/sh -c " + look);
    const ProgramResult under = shell(begin + run_none + "-- /bin/sh -c " + look);
    EXPECT_EQ(under.output, alone.output);
    EXPECT_TRUE(has(alone.output, "\n900\n")) << alone.output;
}

TEST(Start, ReportsThePoolsOfAllProcessesLargestFirst) {
    const ProgramResult result = ran({"--with", "none", "--json", "--", TENSORPOOL_SUBJECT, "hold",
                                      "1", "fork", "hold", "2", "exit", "9"});
    EXPECT_EQ(result.exit_code, 9);
    const auto lines = json_lines(result.errors);
    ASSERT_EQ(lines.size(), 3U) << result.errors;
    EXPECT_EQ(lines[0]["processes"], 2);
    EXPECT_EQ(lines[0]["exit_code"], 9);
    EXPECT_EQ(lines[0]["problems"].size(), 0U) << result.errors;
    EXPECT_NE(lines[1]["process"], lines[2]["process"]);
    for (const Json& process : {lines[1], lines[2]}) {
        EXPECT_EQ(process["pools"][0]["allocations"], 2);
        EXPECT_EQ(process["process_name"], "run_subject");
    }
}

TEST(Start, ReportsTheFinalStatisticsOfAKilledProgram) {
    const ProgramResult result = ran({"--with", "none", "--json", "--", TENSORPOOL_SUBJECT, "use",
                                      "1000", "hold", "3", "raise", "9"});
    EXPECT_EQ(result.exit_code, -1);
    const auto lines = json_lines(result.errors);
    ASSERT_EQ(lines.size(), 2U) << result.errors;
    EXPECT_EQ(lines[0]["signal"], 9);
    EXPECT_EQ(lines[1]["pools"][0]["allocations"], 1001);
    EXPECT_GE(lines[1]["pools"][0]["in_use_bytes"], 3 << 20);
}

TEST(Start, AProcessThatExecutesAnotherProgramIsReportedAsTwo) {
    const ProgramResult result = ran({"--with", "none", "--json", "--", TENSORPOOL_SUBJECT, "hold",
                                      "1", "exec", "hold", "2", "hold", "2"});
    const auto lines = json_lines(result.errors);
    ASSERT_EQ(lines.size(), 3U) << result.errors;
    EXPECT_EQ(lines[1]["process"], lines[2]["process"]);
    EXPECT_EQ(lines[1]["pools"][0]["allocations"], 2);
    EXPECT_EQ(lines[2]["pools"][0]["allocations"], 1);
}

TEST(Start, ReportsTheLargestOfManyProcessesAndASum) {
    const ProgramResult text =
        ran({"--with", "none", "--", "/bin/sh", "-c",
             "for i in $(seq 40); do " + std::string(TENSORPOOL_SUBJECT) + " hold 1; done"});
    EXPECT_TRUE(has(text.errors, "40 processes used a pool")) << text.errors;
    EXPECT_TRUE(has(text.errors, "\n20 processes more in total: peak 20")) << text.errors;
}

TEST(Start, ManyProcessesStayWithinTheDescriptorLimit) {
    const ProgramResult text =
        shell("ulimit -n 200; " + run_none + "-- /bin/sh -c 'for i in $(seq 60); do " +
              TENSORPOOL_SUBJECT + " hold 1 & done; wait' 2>&1");
    EXPECT_TRUE(has(text.output, "60 processes used a pool")) << text.output;
}

TEST(Start, ReportsAProcessThatOutlivesTheProgram) {
    const photos::TemporaryFolder folder;
    const std::string pipe = folder.path() / "pipe";
    StartedProgram program({TENSORPOOL_PROGRAM, "run", "--with", "none", "--", "/bin/sh", "-c",
                            "exec 3<&0; mkfifo " + pipe + "; " + TENSORPOOL_SUBJECT +
                                " hold 1 say held read <&3 >" + pipe + " & read line <" + pipe +
                                "; exit 4"});
    EXPECT_EQ(program.wait(), 4);
    EXPECT_TRUE(has(program.errors(), "(run_subject), still running")) << program.errors();
}

TEST(Start, ReportsThatStatisticsArePrivate) {
    const ProgramResult result = ran({"--with", "none", "--", TENSORPOOL_SUBJECT, "hold", "1"},
                                     {{"TENSORPOOL_STATISTICS", "off"}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(has(result.errors, "TENSORPOOL_STATISTICS=off keeps the statistics private"))
        << result.errors;
}

TEST(Start, ThePoolStaysWithinTheLimit) {
    const ProgramResult result = ran({"--with", "none", "--limit", "8MiB", "--", TENSORPOOL_SUBJECT,
                                      "hold", "5", "hold", "5", "hold", "2"});
    EXPECT_EQ(result.output, "refused\n");
    EXPECT_TRUE(has(result.errors, "8MiB for the pool of each process; 1 request failed"))
        << result.errors;
}

}  // namespace
}  // namespace tensorpool::command::run
