#include "files/shapes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tensorpool::files {
namespace {

using Shape = std::vector<std::uint64_t>;
constexpr std::uint64_t max_count = (std::uint64_t{1} << 63) - 1;

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

TEST(CountElements, IsTheProduct) {
    EXPECT_EQ(count_elements({}), 1U);
    EXPECT_EQ(count_elements(Shape{3, 4, 5}), 60U);
    EXPECT_EQ(count_elements(Shape{3, 0, 5}), 0U);
    EXPECT_EQ(count_elements(Shape{max_count}), max_count);
    EXPECT_EQ(count_elements(Shape{max_count, 1}), max_count);
}

TEST(CountElements, FailsAbove63Bits) {
    EXPECT_FALSE(count_elements(Shape{max_count + 1}));
    EXPECT_FALSE(count_elements(Shape{max_count, 2}));
    EXPECT_FALSE(count_elements(Shape{max_count, max_count}));
    EXPECT_FALSE(count_elements(Shape{std::uint64_t{1} << 32, std::uint64_t{1} << 32, 0}));
}

TEST(CountBytes, CountsWholeBlocks) {
    const ElementType q4{"Q4_0", 32, 18, -1};
    EXPECT_EQ(count_bytes(64, q4), 36U);
    EXPECT_EQ(count_bytes(0, q4), 0U);
    EXPECT_FALSE(count_bytes(max_count, {"F32", 1, 4, 2}));
    EXPECT_EQ(count_bytes(max_count / 4, {"F32", 1, 4, 2}), max_count / 4 * 4);
}

}  // namespace
}  // namespace tensorpool::files
