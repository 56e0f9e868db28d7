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

}  // namespace
}  // namespace tensorpool::platform
