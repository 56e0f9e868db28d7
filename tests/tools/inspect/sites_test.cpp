#include "inspect/analysis.hpp"

#include <gtest/gtest.h>

#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::inspect {
namespace {

using trace::RecordedFrame;
using trace::testing::MadeRecording;

class SitesTest : public ::testing::Test {
protected:
    /// The name of the site with such a stack, innermost frame first.
    std::string site(std::vector<RecordedFrame> frames) {
        made_.recording().processes[0].stack_interval = 1000;
        made_.allocate(0x10000, 5000).stack = made_.stack(std::move(frames));
        const History history(made_.recording());
        FrameNames names(made_.recording());
        const Sites sites = sites_of(history, names, 10, [](const Lifetime&) { return true; });
        return sites.largest.empty() ? "" : sites.largest.front().name;
    }

    MadeRecording made_;
    const std::uint32_t numpy_ = made_.module("/usr/lib/python3/dist-packages/numpy/core/umath.so");
    const std::uint32_t numpy_code_ =
        made_.module("python:ones@/usr/lib/python3/dist-packages/numpy/core/numeric.py");
    const std::uint32_t user_code_ = made_.module("python:Model.<lambda>@/home/me/train.py");
    const std::uint32_t outer_code_ = made_.module("python:<module>@/home/me/train.py");
};

TEST_F(SitesTest, OfAPythonProgramIsItsInnermostOwnLine) {
    EXPECT_EQ(site({{numpy_, 0x100}, {numpy_code_, 190}, {user_code_, 12}, {outer_code_, 40}}),
              "Model.<lambda> at train.py:12");
}

TEST_F(SitesTest, OfACallThatNumPyDispatchesIsTheLineOfTheProgram) {
    const auto dispatcher = made_.module("python:pad@<__array_function__ internals>");
    EXPECT_EQ(site({{numpy_, 0x100}, {numpy_code_, 190}, {dispatcher, 200}, {user_code_, 12}}),
              "Model.<lambda> at train.py:12");
}

TEST_F(SitesTest, OfAnImportIsTheLineOfTheProgram) {
    const auto loader = made_.module("python:_load@<frozen importlib._bootstrap>");
    const auto wrapper = made_.module("python:exec_module@/usr/share/x/sitecustomize.py");
    EXPECT_EQ(site({{numpy_code_, 9}, {wrapper, 44}, {loader, 690}, {outer_code_, 1}}),
              "<module> at train.py:1");
}

TEST_F(SitesTest, OfALibrarysOwnWorkIsItsInnermostLine) {
    EXPECT_EQ(site({{numpy_, 0x100}, {numpy_code_, 190}}), "ones at numeric.py:190");
}

TEST_F(SitesTest, OfNativeCodeIsAnOffset) {
    EXPECT_EQ(site({{numpy_, 0x100}, {numpy_, 0x200}}), "umath.so+0x100");
}

TEST_F(SitesTest, OfAFunctionWithoutALineHasItsFile) {
    EXPECT_EQ(site({{user_code_, 0}}), "Model.<lambda> at train.py:0");
}

}  // namespace
}  // namespace tensorpool::command::inspect
