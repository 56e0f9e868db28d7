#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/temporary_folder.hpp"
#include "tools/tensorpool/started_program.hpp"
#include "tools/trace/made_trace.hpp"

namespace tensorpool::command {
namespace {

using trace::testing::entry;
using trace::testing::MadeTrace;
using trace::testing::thread_entry;
using enum TraceAction;

class ExportProgram : public ::testing::Test {
protected:
    ExportProgram() {
        MadeTrace trace;
        trace.process().name(1, TraceSource::pool, "weights");
        trace.entries({thread_entry(70), entry(allocate, 2000, 0x1000, 100)}).end();
        const auto bytes = trace.bytes();
        path_ =
            folder_.file("a.trace", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }

    /// Returns the exit code.
    int run(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {TENSORPOOL_PROGRAM, "export"});
        StartedProgram program(std::move(arguments));
        output_ = program.read_line();
        const int code = program.wait();
        errors_ = program.errors();
        return code;
    }
    std::string first_line_of(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        std::string line;
        std::getline(file, line);
        return line;
    }

    photos::TemporaryFolder folder_;
    std::string path_, output_, errors_;
};

TEST_F(ExportProgram, WritesEachFormatToAFile) {
    const std::string out = folder_.path() / "out";
    EXPECT_EQ(run({path_, "--format", "rmm", "-o", out}), 0) << errors_;
    EXPECT_EQ(first_line_of(out), "Thread,Time,Action,Pointer,Size,Stream");
    EXPECT_EQ(run({path_, "-f", "chrome", "-o", out}), 0) << errors_;
    EXPECT_TRUE(first_line_of(out).starts_with("{\"displayTimeUnit\""));
    EXPECT_EQ(run({path_, "-f", "torch", "-o", out, "--at", "end"}), 0) << errors_;
    EXPECT_TRUE(first_line_of(out).starts_with("\x80\x04}"));
    EXPECT_EQ(run({path_, "-f", "heap", "-o", out, "--at", "peak"}), 0) << errors_;
    EXPECT_EQ(first_line_of(out), "--- symbol");
}

TEST_F(ExportProgram, WritesToStandardOutput) {
    EXPECT_EQ(run({path_, "-f", "rmm"}), 0) << errors_;
    EXPECT_EQ(output_, "Thread,Time,Action,Pointer,Size,Stream");
}

TEST_F(ExportProgram, PrintsASummary) {
    const std::string out = folder_.path() / "out";
    EXPECT_EQ(run({path_, "-f", "rmm", "-o", out, "--json"}), 0) << errors_;
    const auto parsed = nlohmann::json::parse(output_);
    EXPECT_EQ(parsed["path"], out);
    EXPECT_EQ(parsed["bytes"], std::filesystem::file_size(out));
    EXPECT_EQ(run({path_, "-f", "rmm", "--json"}), 2);
}

TEST_F(ExportProgram, ReportsATruncatedRecording) {
    const std::string out = folder_.path() / "out";
    EXPECT_EQ(run({path_, "-f", "rmm", "-o", out}), 0);
    EXPECT_EQ(errors_, "");
    std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
    EXPECT_EQ(run({path_, "-f", "rmm", "-o", out}), 0);
    EXPECT_NE(errors_.find("is truncated: its last 63 bytes"), std::string::npos) << errors_;
    EXPECT_EQ(run({path_, "-f", "rmm", "-o", out, "--json"}), 0);
    EXPECT_EQ(nlohmann::json::parse(output_)["cut_bytes"], 63);
}

TEST_F(ExportProgram, RejectsInvalidRequests) {
    EXPECT_EQ(run({path_, "-f", "excel"}), 2);
    EXPECT_EQ(run({path_}), 2);
    EXPECT_EQ(run({path_, "-f", "rmm", "-o", path_}), 2);
    EXPECT_NE(errors_.find("is the recording itself"), std::string::npos);
    EXPECT_EQ(run({path_, "-f", "rmm", "-o", "/dev/full"}), 1);
    EXPECT_NE(errors_.find("No space left on device"), std::string::npos);
    EXPECT_EQ(run({folder_.file("text", "neither the one nor the other"), "-f", "rmm"}), 1);
}

}  // namespace
}  // namespace tensorpool::command
