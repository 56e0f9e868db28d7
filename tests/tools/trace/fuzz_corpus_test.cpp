// Replays the findings of trace_fuzz, with every compiler.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fed_trace.hpp"

namespace tensorpool::command::trace {
namespace {

TEST(TraceCorpus, IsReadOrRejected) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TENSORPOOL_TRACE_CORPUS)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        EXPECT_NO_THROW(testing::feed_trace(std::as_bytes(std::span(text)))) << entry.path();
        ++count;
    }
    EXPECT_GE(count, 8U);
}

}  // namespace
}  // namespace tensorpool::command::trace
