// Tests the program as a user runs it.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/run_program.hpp"
#include "tools/temporary_folder.hpp"
#include "tools/trace/made_trace.hpp"

namespace tensorpool::command {
namespace {

using testing::ProgramResult;
using testing::run_program;

class PlanProgram : public ::testing::Test {
protected:
    ProgramResult run(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "plan");
        return run_program(TENSORPOOL_PROGRAM, arguments);
    }
    std::string path(const char* name) const { return folder_.path() / name; }
    std::string content_of(const std::string& path) const {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }

    photos::TemporaryFolder folder_;
    /// Two buffers that can share memory, and one alive with both: the optimum is 300 bytes.
    std::string csv_ =
        folder_.file("a.csv", "id,lower,upper,size\nx,0,5,100\nboth,0,9,200\ny,5,9,100\n");
};

TEST_F(PlanProgram, PrintsWhatTheBuffersNeed) {
    const ProgramResult result = run({csv_});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("peak                300 B  0% above the lower bound; proven "
                                 "optimal\n"),
              std::string::npos)
        << result.output;
}

TEST_F(PlanProgram, PrintsJson) {
    const auto json = nlohmann::json::parse(run({csv_, "--json", "--budget", "0"}).output);
    EXPECT_EQ(json["buffers"], 3);
    EXPECT_EQ(json["peak_bytes"], 300);
    EXPECT_EQ(json["optimal"], true);
}

TEST_F(PlanProgram, AWrittenPlanPassesTheCheck) {
    for (const char* const name : {"plan.csv", "plan.json"}) {
        ASSERT_EQ(run({csv_, "-o", path(name)}).exit_code, 0);
        const ProgramResult result = run({path(name), "--check"});
        EXPECT_EQ(result.exit_code, 0) << result.errors;
        EXPECT_NE(result.output.find("the offsets are valid"), std::string::npos) << result.output;
    }
}

TEST_F(PlanProgram, ReportsInvalidPlans) {
    const std::string bad = folder_.file(
        "bad.csv", "id,lower,upper,size,offset\nx,0,5,100,0\nboth,0,9,200,99\ny,5,9,100,299\n");
    const ProgramResult result = run({bad, "--check"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.errors.find("bad.csv: buffer 0 [0, 100) and buffer 1 [99, 299) overlap"),
              std::string::npos)
        << result.errors;
    EXPECT_EQ(run({csv_, "--check"}).exit_code, 1);
    EXPECT_NE(run({csv_, "--check"}).errors.find("has no offsets"), std::string::npos);
    const std::string small = folder_.file(
        "small.json",
        R"({"peak_bytes":99,"buffers":[{"lower":0,"upper":1,"size":100,"offset":0}]})");
    EXPECT_EQ(run({small, "--check"}).exit_code, 1) << "beyond the peak in the file";
}

TEST_F(PlanProgram, DrawsThePlan) {
    ASSERT_EQ(run({csv_, "--svg", path("plan.svg")}).exit_code, 0);
    const std::string svg = content_of(path("plan.svg"));
    EXPECT_TRUE(svg.starts_with("<svg "));
    EXPECT_NE(svg.find("<title>both: 200 B"), std::string::npos);
}

TEST_F(PlanProgram, ExitStatusReportsACapacityThatIsTooSmall) {
    EXPECT_EQ(run({csv_, "--capacity", "1KiB"}).exit_code, 0);
    EXPECT_EQ(run({csv_, "--capacity", "300B"}).exit_code, 0);
    EXPECT_EQ(run({csv_, "--capacity", "299B"}).exit_code, 1);
}

TEST_F(PlanProgram, PlansATrace) {
    trace::testing::MadeTrace trace;
    trace.process().name(1, TraceSource::pool, "weights");
    trace.entries({trace::testing::thread_entry(70),
                   trace::testing::entry(TraceAction::allocate, 2000, 0x1000, 100)});
    const auto bytes = trace.end().bytes();
    const std::string path =
        folder_.file("a.trace", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const ProgramResult result = run({path, "--json"});
    EXPECT_EQ(nlohmann::json::parse(result.output)["peak_bytes"], 100) << result.errors;
    EXPECT_EQ(run({path, "--source", "unknown"}).exit_code, 1);
    EXPECT_EQ(run({path, "-o", path}).exit_code, 2) << "the input file is not overwritten";
}

TEST_F(PlanProgram, RejectsInvalidArgumentsAndFiles) {
    EXPECT_EQ(run({}).exit_code, 2);
    EXPECT_EQ(run({csv_, "--budget", "soon"}).exit_code, 2);
    EXPECT_EQ(run({csv_, "--capacity", "some"}).exit_code, 2);
    EXPECT_EQ(run({csv_, "--kind", "nice"}).exit_code, 2);
    EXPECT_EQ(run({csv_, "--check", "-o", path("plan.csv")}).exit_code, 2);
    const ProgramResult damaged = run({folder_.file("b.csv", "lower,upper,size\n1,2,x\n")});
    EXPECT_EQ(damaged.exit_code, 1);
    EXPECT_NE(damaged.errors.find("b.csv: line 2, column 5 (size): found \"x\""), std::string::npos)
        << damaged.errors;
    const std::string large = std::to_string((std::uint64_t{1} << 62) - 1);
    EXPECT_EQ(run({folder_.file("c.csv", "lower,upper,size\n1,2," + large + "\n1,2," + large +
                                             "\n1,2," + large + "\n")})
                  .exit_code,
              1);
}

TEST_F(PlanProgram, FailsIfAFileCannotBeWritten) {
    EXPECT_EQ(run({csv_, "-o", "/dev/full"}).exit_code, 1);
    EXPECT_EQ(run({csv_, "--svg", "/nowhere/a.svg"}).exit_code, 1);
}

}  // namespace
}  // namespace tensorpool::command
