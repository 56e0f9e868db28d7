#include "develop/context_mat_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <tensorpool/scratch_report.hpp>

#include "support/as_default.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mat_bytes = 4096;

class MatScopesTest : public testing::Test {
protected:
    static cv::Mat make_mat() { return {64, 64, CV_8U}; }

    Context context_;
    ContextMatAllocator memory_{context_};
    AsDefault all_{memory_};
};

OperatorScratch reported(const std::string& name) {
    const ScratchReport report = scratch_report();
    const auto found = std::ranges::find(report.operators, name, &OperatorScratch::name);
    return found == report.operators.end() ? OperatorScratch{} : *found;
}

TEST_F(MatScopesTest, APhaseFreesItsArenaMemory) {
    const cv::Mat before = make_mat();
    for (int picture = 0; picture < 3; ++picture) {
        const MatPhase phase(memory_, "picture");
        make_mat();
        make_mat();
        EXPECT_EQ(context_.used(), 3 * mat_bytes);
    }
    EXPECT_EQ(context_.used(), mat_bytes);
    EXPECT_EQ(context_.peak(), 3 * mat_bytes);
}

TEST_F(MatScopesTest, PhasesNestAndCountTheirOwn) {
    const MatPhase picture(memory_, "picture");
    cv::Mat photograph = make_mat();
    {
        const MatPhase inner(memory_, "operator");
        make_mat();
        photograph.release();  // belongs to the outer phase
    }
    EXPECT_EQ(context_.used(), mat_bytes);
}

TEST_F(MatScopesTest, AnInnerScopeFreesTemporaries) {
    const MatScope scope(memory_, "test");
    const cv::Mat outside = make_mat();
    {
        const MatScope inner;
        make_mat();
        EXPECT_EQ(context_.scratch_used(), 2 * mat_bytes);
    }
    EXPECT_EQ(context_.scratch_used(), mat_bytes);
    const cv::Mat after = make_mat();
    EXPECT_EQ(context_.scratch_used(), 2 * mat_bytes);
}

TEST_F(MatScopesTest, TheScratchOfAnOperatorIsReportedByItsName) {
    for (int call = 0; call < 2; ++call) {
        const MatScope scope(memory_, "MatScopesTest");
        make_mat();
        make_mat();
    }
    EXPECT_EQ(reported("MatScopesTest").calls, 2U);
    EXPECT_EQ(reported("MatScopesTest").peak_bytes, 2 * mat_bytes);
}

TEST_F(MatScopesTest, AnInnerScopeNeedsAnOuterOne) {
    EXPECT_FALSE(MatScope::is_open());
    EXPECT_THROW(MatScope(), cv::Exception);
}

using MatScopesDeathTest = MatScopesTest;

TEST_F(MatScopesDeathTest, AMatThatOutlivesItsScopeStopsTheProgram) {
    const auto leave_one = [&] {
        cv::Mat mat;
        const MatScope scope(memory_, "denoise");
        mat = make_mat();
    };
    EXPECT_DEATH(leave_one(), "the memory of 1 cv::Mat ends with 'denoise'; expected none");
}

TEST_F(MatScopesDeathTest, AMatThatOutlivesItsPhaseStopsTheProgram) {
    const auto leave_one = [&] {
        cv::Mat mat;
        const MatPhase phase(memory_, "Wood.jpg");
        mat = make_mat();
    };
    EXPECT_DEATH(leave_one(), "the memory of 1 cv::Mat ends with 'Wood.jpg'; expected none");
}

}  // namespace
}  // namespace tensorpool
