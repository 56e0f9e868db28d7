#include "formats/profile/named_profile.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::profile {
namespace {

using Texts = std::vector<std::string>;

/// Returns the short stack of frames with these modules and functions, innermost first.
Texts short_stack(std::vector<symbols::FrameName> innermost_first) {
    NamedProfile named;
    named.frames = std::move(innermost_first);
    ProfileSite site;
    for (std::size_t i = named.frames.size(); i-- > 0;) {
        site.stack.push_back(static_cast<std::uint32_t>(i));
    }
    return short_stack_of(named, site);
}

symbols::FrameName native(std::string module, std::string function) {
    symbols::FrameName frame;
    frame.module = std::move(module);
    frame.location.function = std::move(function);
    return frame;
}

symbols::FrameName python(std::string function) {
    symbols::FrameName frame;
    frame.location = {std::move(function), "/home/me/train.py", 5};
    frame.is_python = true;
    return frame;
}

TEST(ShortStack, HasTheCallsOfAPythonProgramAndSumsThoseOfLibrariesUp) {
    EXPECT_EQ(
        short_stack({native("/usr/lib/libtorch_cpu.so", "empty"),
                     native("/usr/lib/libtorch_cpu.so", "rand"),
                     native("/usr/lib/libtorch_python.so", ""), python("load"),
                     native("/usr/lib/libone.so", "map"), native("/usr/lib/libone.so", "each"),
                     python("<module>"), native("/usr/lib/libc.so.6", "start"),
                     native("/usr/bin/python3", "_start")}),
        (Texts{"3 calls in libtorch_cpu.so and other libraries", "load at train.py:5",
               "2 calls in libone.so", "<module> at train.py:5"}));
}

TEST(ShortStack, NamesASingleCallOfALibrary) {
    EXPECT_EQ(short_stack({native("/usr/lib/numpy.so", "zeros"), python("load")}),
              (Texts{"zeros in numpy.so", "load at train.py:5"}));
}

TEST(ShortStack, EndsWithTheMainFunctionOfAnotherProgram) {
    EXPECT_EQ(
        short_stack({native("/usr/lib/libcv.so", "create"), native("/usr/lib/libcv.so", "blur"),
                     native("/home/me/train", "main"), native("/usr/lib/libc.so.6", "start")}),
        (Texts{"create in libcv.so", "blur in libcv.so", "main in train"}));
}

TEST(ShortStack, HasAllCallsOfAThreadThatHasNoMainFunction) {
    EXPECT_EQ(short_stack({native("/home/me/train", "work"), native("/lib/libc.so.6", "clone")}),
              (Texts{"work in train", "clone in libc.so.6"}));
}

TEST(ShortStack, IsSafeToPrint) {
    EXPECT_EQ(short_stack({python("a\x1b[2J")}), Texts{"a?[2J at train.py:5"});
    EXPECT_EQ(short_stack_of({}, {}), Texts{"[other stacks]"});
}

}  // namespace
}  // namespace tensorpool::command::profile
