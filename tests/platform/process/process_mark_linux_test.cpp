#include "platform/platform.hpp"

#include <gtest/gtest.h>

#include "support/bare_child_linux.hpp"
#include "support/child_process.hpp"

namespace tensorpool::platform {
namespace {

TEST(ProcessMark, IsSetInThisProcess) {
    const std::atomic<std::uint32_t>* const mark = make_process_mark();
    ASSERT_NE(mark, nullptr);
    EXPECT_EQ(mark->load(), 1U);
}

TEST(ProcessMark, IsNotSetInTheChildOfAFork) {
    const std::atomic<std::uint32_t>* const mark = make_process_mark();
    EXPECT_TRUE(testing::holds_in_child([&] { return mark->load() == 0; }));
    EXPECT_EQ(mark->load(), 1U);
}

TEST(ProcessMark, IsNotSetInAChildMadeWithoutHandlers) {
    const std::atomic<std::uint32_t>* const mark = make_process_mark();
    EXPECT_TRUE(testing::holds_in_bare_child([&] { return mark->load() == 0; }));
    EXPECT_EQ(mark->load(), 1U);
}

}  // namespace
}  // namespace tensorpool::platform
