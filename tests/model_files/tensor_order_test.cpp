#include "models/model_contents.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tensorpool::files {
namespace {

using Range = std::pair<std::uint64_t, std::uint64_t>;  // offset and bytes
using Numbers = std::vector<std::uint32_t>;

std::vector<ModelTensor> tensors(const std::vector<Range>& ranges) {
    std::vector<ModelTensor> made;
    for (const auto& [offset, bytes] : ranges) {
        made.emplace_back();
        made.back().offset = offset;
        made.back().bytes = bytes;
    }
    return made;
}

TEST(TensorOrder, SortedTensorsNeedNoOrder) {
    EXPECT_TRUE(order_by_offset({}).empty());
    EXPECT_TRUE(order_by_offset(tensors({{0, 4}, {4, 0}, {4, 0}, {4, 8}})).empty());
}

TEST(TensorOrder, SortsByOffsetThenBytesThenNumber) {
    EXPECT_EQ(order_by_offset(tensors({{8, 4}, {0, 8}})), (Numbers{1, 0}));
    EXPECT_EQ(order_by_offset(tensors({{8, 4}, {8, 0}, {0, 8}, {8, 0}})), (Numbers{2, 1, 3, 0}));
}

TEST(TensorOrder, VisitsEachWithItsPredecessor) {
    const auto pairs = [](const std::vector<ModelTensor>& of) {
        std::vector<std::pair<std::size_t, std::size_t>> seen;
        visit_by_offset(of, [&](std::size_t number, std::size_t previous) {
            seen.emplace_back(number, previous);
        });
        return seen;
    };
    using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
    EXPECT_EQ(pairs({}), Pairs());
    EXPECT_EQ(pairs(tensors({{0, 1}, {1, 1}, {2, 1}})), (Pairs{{0, 0}, {1, 0}, {2, 1}}));
    EXPECT_EQ(pairs(tensors({{2, 1}, {0, 1}, {1, 1}})), (Pairs{{1, 1}, {2, 1}, {0, 2}}));
}

}  // namespace
}  // namespace tensorpool::files
