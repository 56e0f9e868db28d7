#include "read/segment_finder.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "platform/process/processes.hpp"
#include "statistics/fake_segment_linux.hpp"

namespace tensorpool::statistics {
namespace {

using namespace read;

/// A segment of a process without memory. Each process is in this state briefly while it exits, and
/// kernel threads always are. Returns nullopt if none is visible, as in a container.
std::optional<FoundSegment> segment_without_memory() {
    for (const std::uint64_t process : platform::process_numbers()) {
        const auto facts = platform::facts_of(process);
        if (!facts || facts->has_memory) continue;
        return FoundSegment{.process = process,
                            .file = {},
                            .descriptor = 1,
                            .is_in_folder = false,
                            .is_of_our_space = true,
                            .start_ticks = facts->start_ticks,
                            .name = "p"};
    }
    return std::nullopt;
}

TEST(LookAfter, ExitingProcessCountsAsEnded) {
    const auto found = segment_without_memory();
    if (!found) GTEST_SKIP() << "no kernel thread is visible here";
    const testing::FakeSegment segment;
    const auto problem = look_after(*found, segment.open());
    ASSERT_TRUE(problem);
    EXPECT_NE(problem->what.find("ended"), std::string::npos) << problem->what;
}

}  // namespace
}  // namespace tensorpool::statistics
