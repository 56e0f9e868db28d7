#include "platform/process/dynamic_library.hpp"

#include <gtest/gtest.h>

namespace tensorpool::platform {
namespace {

TEST(DynamicLibrary, ReportsWhyLibraryCannotBeLoaded) {
    DynamicLibrary library;
    EXPECT_FALSE(library.open("libtensorpool_no_such_library.so"));
    EXPECT_NE(library.problem().find("libtensorpool_no_such_library.so"), std::string::npos)
        << library.problem();
}

TEST(DynamicLibrary, FindsOnlyFunctionsOfLibrary) {
    DynamicLibrary library;
    ASSERT_TRUE(library.open("libm.so.6")) << library.problem();
    const auto root = reinterpret_cast<double (*)(double)>(library.find("sqrt"));
    ASSERT_NE(root, nullptr);
    EXPECT_EQ(root(49.0), 7.0);
    EXPECT_EQ(library.find("no_such_function_of_libm"), nullptr);
}

}  // namespace
}  // namespace tensorpool::platform
