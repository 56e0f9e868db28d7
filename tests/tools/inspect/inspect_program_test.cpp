#include <gtest/gtest.h>

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

struct Answer {
    int code;
    std::string output;
    std::string errors;
};

Answer run(std::vector<std::string> words) {
    words.insert(words.begin(), TENSORPOOL_PROGRAM);
    StartedProgram program(std::move(words));
    std::string output;
    for (std::string line = program.read_line(); !line.empty(); line = program.read_line()) {
        output += line + '\n';
    }
    return {program.wait(), output, program.errors()};
}

std::string write(const photos::TemporaryFolder& folder, const MadeTrace& trace) {
    const auto bytes = trace.bytes();
    return folder.file("a.trace", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

MadeTrace some_trace() {
    MadeTrace trace;
    trace.process().name(1, TraceSource::pool, "weights");
    trace.entries({thread_entry(70), entry(allocate, 2000, 0x1000, 100)}).end();
    return trace;
}

std::string content_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(InspectProgram, PrintsTextOrJson) {
    const photos::TemporaryFolder folder;
    const std::string path = write(folder, some_trace());
    const Answer text = run({"inspect", path, "--bytes"});
    EXPECT_EQ(text.code, 0) << text.errors;
    EXPECT_EQ(text.output, path + '\n');  // then an empty line
    const Answer json = run({"inspect", path, "--json"});
    EXPECT_EQ(json.code, 0) << json.errors;
    EXPECT_EQ(nlohmann::json::parse(json.output)["peak"]["alive_bytes"], 100);
}

TEST(InspectProgram, WritesAPage) {
    const photos::TemporaryFolder folder;
    const std::string path = write(folder, some_trace());
    const std::string page = folder.path() / "report.html";
    const Answer answer = run({"inspect", path, "--html", page});
    EXPECT_EQ(answer.code, 0) << answer.errors;
    EXPECT_EQ(answer.output, "");
    EXPECT_TRUE(content_of(page).starts_with("<!doctype html>"));
    EXPECT_TRUE(content_of(page).ends_with("</html>\n"));
}

TEST(InspectProgram, DoesNotOverwriteTheRecording) {
    const photos::TemporaryFolder folder;
    const std::string path = write(folder, some_trace());
    const Answer answer = run({"inspect", path, "--html", path});
    EXPECT_EQ(answer.code, 2);
    EXPECT_NE(answer.errors.find("is the recording itself"), std::string::npos);
    EXPECT_TRUE(content_of(path).starts_with("TPTRACE"));
}

TEST(InspectProgram, ReportsInvalidFiles) {
    const photos::TemporaryFolder folder;
    const Answer other = run({"inspect", folder.file("text", "this is no trace, but text")});
    EXPECT_EQ(other.code, 1);
    EXPECT_NE(other.errors.find("at byte 0"), std::string::npos) << other.errors;
    MadeTrace empty;
    empty.process().end();
    const Answer nothing = run({"inspect", write(folder, empty)});
    EXPECT_EQ(nothing.code, 1);
    EXPECT_NE(nothing.errors.find("holds no calls"), std::string::npos) << nothing.errors;
    const Answer missing = run({"inspect", "/nowhere/a.trace"});
    EXPECT_EQ(missing.code, 1);
    EXPECT_NE(missing.errors.find("/nowhere/a.trace"), std::string::npos);
}

TEST(InspectProgram, FailsIfThePageCannotBeWritten) {
    const photos::TemporaryFolder folder;
    const std::string path = write(folder, some_trace());
    const Answer folderless = run({"inspect", path, "--html", "/nowhere/report.html"});
    EXPECT_EQ(folderless.code, 1);
    EXPECT_NE(folderless.errors.find("/nowhere/report.html cannot be written"), std::string::npos);
    const Answer full = run({"inspect", path, "--html", "/dev/full"});
    EXPECT_EQ(full.code, 1);
    EXPECT_NE(full.errors.find("No space left on device"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command
