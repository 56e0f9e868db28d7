#include "platform/platform.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace tensorpool::platform {
namespace {

TEST(FailDeathTest, AbortsAfterOneLineWithPrefix) {
    EXPECT_EXIT(fail("deallocate: block %d belongs to '%s'", 7, "images"),
                ::testing::KilledBySignal(SIGABRT),
                "^tensorpool: deallocate: block 7 belongs to 'images'\n$");
}

TEST(FailDeathTest, TruncatesOverlongLineAndKeepsNewline) {
    const std::string overlong(5000, 'x');
    EXPECT_EXIT(fail("%s", overlong.c_str()), ::testing::KilledBySignal(SIGABRT),
                "^tensorpool: x{511}\n$");
}

TEST(Say, WritesOneLineToStderrAndReturns) {
    ::testing::internal::CaptureStderr();
    say("%zu B of %s", std::size_t{64}, "100 %");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tensorpool: 64 B of 100 %\n");
}

}  // namespace
}  // namespace tensorpool::platform
