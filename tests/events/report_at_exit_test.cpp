#include "events/report_at_exit.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace tensorpool::events {
namespace {

class ReportAtExit : public ::testing::Test {
protected:
    ~ReportAtExit() override { unsetenv("TENSORPOOL_REPORT"); }
};

TEST_F(ReportAtExit, IsRequestedByOneOnly) {
    EXPECT_FALSE(report_wanted_by_environment());
    for (const auto& [text, wanted] : {std::pair{"1", true}, {"0", false}, {"", false}}) {
        setenv("TENSORPOOL_REPORT", text, 1);
        EXPECT_EQ(report_wanted_by_environment(), wanted);
    }
    setenv("TENSORPOOL_REPORT", "yes", 1);
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(report_wanted_by_environment());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "tensorpool: TENSORPOOL_REPORT is 'yes'; expected 1 or 0; used instead: 0\n");
}

TEST_F(ReportAtExit, IsRegisteredOnce) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            setenv("TENSORPOOL_REPORT", "yes", 1);
            report_at_exit_where_wanted();
            report_at_exit_where_wanted();
            std::exit(0);
        },
        ::testing::ExitedWithCode(0),
        "^tensorpool: TENSORPOOL_REPORT is 'yes'; expected 1 or 0; used instead: 0\n$");
}

}  // namespace
}  // namespace tensorpool::events
