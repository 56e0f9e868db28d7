#include "models/model_contents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tensorpool::files {
namespace {

using Shape = std::vector<std::uint64_t>;

TEST(Shapes, NeverMove) {
    Shapes shapes;
    std::vector<std::span<const std::uint64_t>> views;
    for (std::uint64_t i = 0; i < 1000; ++i) views.push_back(shapes.add(Shape{i, i + 1, i + 2}));
    for (std::uint64_t i = 0; i < 1000; ++i) {
        EXPECT_TRUE(std::ranges::equal(views[i], Shape{i, i + 1, i + 2}));
    }
    EXPECT_EQ(shapes.add(Shape{}).size(), 0U);
    EXPECT_EQ(shapes.add(Shape(10'000, 7)).back(), 7U);
}

}  // namespace
}  // namespace tensorpool::files
