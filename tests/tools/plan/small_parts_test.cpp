#include "plan/report.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::planning {
namespace {

std::vector<std::string> paths_of(const SmallParts& parts) {
    std::vector<std::string> paths;
    for (unsigned shade = 0; shade < SmallParts::shades; ++shade) {
        paths.push_back(parts.path_of(shade));
    }
    return paths;
}

using Paths = std::vector<std::string>;

TEST(SmallParts, AreShadedByTheCoveredPart) {
    SmallParts parts({10, 20, 30, 40});
    EXPECT_EQ(paths_of(parts), (Paths{"", "", "", ""}));
    parts.add({10, 20, 10.5, 22});
    EXPECT_EQ(paths_of(parts), (Paths{"M10 20h2v2h-2z", "", "", ""}));
    parts.add({10.5, 20, 11, 22});
    EXPECT_EQ(paths_of(parts), (Paths{"", "M10 20h2v2h-2z", "", ""}));
    for (int i = 0; i < 5; ++i) parts.add({10, 20, 12, 22});
    EXPECT_EQ(paths_of(parts), (Paths{"", "", "", "M10 20h2v2h-2z"}));
}

TEST(SmallParts, AdjacentCellsOfAShadeAreOneStep) {
    SmallParts parts({0, 0, 20, 4});
    parts.add({4, 0, 16, 2});
    EXPECT_EQ(paths_of(parts), (Paths{"", "", "", "M4 0h12v2h-12z"}));
}

TEST(SmallParts, PartsAreCutAtTheEdge) {
    SmallParts parts({0, 0, 4, 4});
    parts.add({-5, -5, 100, 100});
    EXPECT_EQ(paths_of(parts), (Paths{"", "", "", "M0 0h4v2h-4zM0 2h4v2h-4z"}));
}

}  // namespace
}  // namespace tensorpool::command::planning
