#include "formats/symbols/frame_names.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::symbols {
namespace {

FrameName native(std::string module, std::string function, std::string file = "") {
    FrameName name;
    name.module = std::move(module);
    name.location = {std::move(function), std::move(file), 5};
    return name;
}

/// Names a frame of Python, as a recording contains it.
FrameName python(const std::string& function_and_file) {
    trace::Recording recording;
    recording.modules.push_back({.path = "python:" + function_and_file});
    return FrameNames(recording).name({.module = 0, .offset = 5});
}

std::string line_of(std::vector<FrameName> innermost_first) {
    std::vector<const FrameName*> frames;
    for (const FrameName& frame : innermost_first) frames.push_back(&frame);
    const FrameName* const line = line_of_program(frames);
    return line == nullptr ? "none" : to_text(*line);
}

const FrameName opencv = native("/usr/lib/x86_64-linux-gnu/libopencv_core.so.406", "cv::create");
const FrameName step = native("/home/me/train", "step", "/home/me/train.cpp");
const FrameName main_function = native("/home/me/train", "main", "/home/me/train.cpp");

TEST(LineOfProgram, IsTheInnermostFunctionOutsideOfTheSystemsLibraries) {
    EXPECT_EQ(line_of({opencv, step, main_function}), "step at train.cpp:5");
    EXPECT_EQ(line_of({native("/home/me/train", "Eigen::product", "/usr/include/eigen3/Eigen/Core"),
                       opencv, step, main_function}),
              "step at train.cpp:5");
}

TEST(LineOfProgram, IsTheInnermostFunctionOfAProgramThatComesWithTheSystem) {
    EXPECT_EQ(line_of({opencv, native("/usr/bin/tool", "main")}),
              "cv::create in libopencv_core.so.406");
}

TEST(LineOfProgram, IsAFunctionOfALibraryIfTheProgramHasNoSymbols) {
    EXPECT_EQ(line_of({opencv, native("/home/me/train", "")}),
              "cv::create in libopencv_core.so.406");
}

TEST(LineOfProgram, IsTheInnermostLineOfPythonOutsideOfPackages) {
    EXPECT_EQ(line_of({opencv, python("forward@/usr/lib/python3/dist-packages/torch/linear.py"),
                       python("public_api@<__array_function__ internals>"),
                       python("exec_module@/usr/share/tensorpool/python_site/sitecustomize.py"),
                       python("load@/home/me/train.py"), python("<module>@/home/me/train.py"),
                       main_function}),
              "load at train.py:5");
}

TEST(LineOfProgram, IsALineThatAPersonTyped) {
    for (const std::string file : {"<stdin>", "<string>", "<ipython-input-3-5c1f>"}) {
        EXPECT_EQ(line_of({opencv, python("<module>@" + file)}), "<module> at " + file + ":5");
    }
}

TEST(LineOfProgram, IsTheInnermostFrameIfAllBelongToLibraries) {
    EXPECT_EQ(line_of({opencv, python("_find@<frozen importlib._bootstrap>"),
                       python("run@/usr/lib/python3.11/runpy.py")}),
              "_find at <frozen importlib._bootstrap>:5");
    EXPECT_EQ(line_of({}), "none");
}

}  // namespace
}  // namespace tensorpool::command::symbols
