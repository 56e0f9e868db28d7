#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

TEST(ProcessorName, MatchesCpuinfo) {
    std::ostringstream list;
    list << std::ifstream("/proc/cpuinfo").rdbuf();
    const std::string name = processor_name().text;
    EXPECT_EQ(name.empty(), list.str().find("model name") == std::string::npos);
    EXPECT_NE(list.str().find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace tensorpool::platform
