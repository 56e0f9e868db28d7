// Tests a program that has more rights than the user who started it.

#include <gtest/gtest.h>
#include <sys/auxv.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "platform/files/trace_output.hpp"

namespace {

std::atomic<bool> has_more_rights = false;

}  // namespace

extern "C" {
unsigned long __real_getauxval(unsigned long what);
unsigned long __wrap_getauxval(unsigned long what) {
    return what == AT_SECURE && has_more_rights ? 1 : __real_getauxval(what);
}
}

namespace tensorpool::platform {
namespace {

TEST(TraceOutput, OpenFailsInSetuidProgram) {
    std::string folder = std::filesystem::temp_directory_path() / "trace-output-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/trace.tpt";
    TraceOutput output;
    has_more_rights = true;
    EXPECT_FALSE(output.open(path.c_str()));
    has_more_rights = false;
    EXPECT_EQ(std::string(output.problem()), "Operation not permitted");
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(output.open(path.c_str()));
    output.close();
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tensorpool::platform
