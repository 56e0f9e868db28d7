#include "events/timeline.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace tensorpool::events {
namespace {

LimitKind kind(const char* limit) {
    return limit_kind({limit, 0});
}

TEST(LimitKind, ClassifiesLimits) {
    EXPECT_EQ(kind("max_allocation"), LimitKind::request);
    EXPECT_EQ(kind("max_capacity"), LimitKind::capacity);
    EXPECT_EQ(kind("the buffer"), LimitKind::capacity);
    EXPECT_EQ(kind("available memory"), LimitKind::memory);
    EXPECT_EQ(kind("what the system commits"), LimitKind::memory);
    EXPECT_EQ(kind("address space"), LimitKind::address_space);
    EXPECT_EQ(kind("the largest alignment"), LimitKind::address_space);
    EXPECT_EQ(kind("memory for the pool's records"), LimitKind::records);
    EXPECT_EQ(kind("an unknown limit"), LimitKind::none);
    EXPECT_EQ(kind(""), LimitKind::none);
}

/// Returns the string literals in assignments to refusals and names of limits.
std::set<std::string> limits_in(const std::string& source) {
    static const std::regex assignment(R"((refusal = |Refusal\{|limit_name_ = )([^;]*);)");
    static const std::regex text(R"regex("([^"]+)")regex");
    std::set<std::string> limits;
    for (std::sregex_iterator one(source.begin(), source.end(), assignment), end; one != end;
         ++one) {
        const std::string value = (*one)[2];
        for (std::sregex_iterator at(value.begin(), value.end(), text); at != end; ++at) {
            limits.insert((*at)[1]);
        }
    }
    return limits;
}

// Reads the library's sources relative to this file.
TEST(LimitKind, ClassifiesEveryLimitInLibrary) {
    const auto lib = std::filesystem::path(__FILE__).parent_path() / "../../lib";
    std::set<std::string> limits;
    for (const auto& file : std::filesystem::recursive_directory_iterator(lib)) {
        const auto extension = file.path().extension();
        if (extension != ".cpp" && extension != ".hpp") continue;
        std::ifstream stream(file.path());
        limits.merge(limits_in({std::istreambuf_iterator<char>(stream), {}}));
    }
    EXPECT_GE(limits.size(), 9U);
    for (const std::string& limit : limits) {
        EXPECT_NE(kind(limit.c_str()), LimitKind::none) << limit;
    }
}

}  // namespace
}  // namespace tensorpool::events
