#include <tensorpool/mat_layout.hpp>

#include <gtest/gtest.h>

#include <cstddef>

namespace tensorpool {
namespace {

constexpr std::size_t automatic = 0x7fffffff;  // CV_AUTOSTEP

TEST(MatLayout, NewMemoryIsContinuous) {
    const int sizes[] = {3, 5, 7};
    std::size_t step[3] = {1, 2, 3};  // overwritten
    EXPECT_EQ(lay_out_mat(3, sizes, CV_16UC2, false, step), 3U * 5 * 7 * 4);
    EXPECT_EQ(step[0], 140U);
    EXPECT_EQ(step[1], 28U);
    EXPECT_EQ(step[2], 4U);
}

TEST(MatLayout, StridesOfTheCallerStayUnlessAutomatic) {
    const int sizes[] = {4, 6};
    std::size_t step[] = {8 * sizeof(float), automatic};
    EXPECT_EQ(lay_out_mat(2, sizes, CV_32F, true, step), 4 * 8 * sizeof(float));
    EXPECT_EQ(step[0], 8 * sizeof(float));
    EXPECT_EQ(step[1], sizeof(float));
}

TEST(MatLayout, StridesMayBeNull) {
    const int sizes[] = {4, 6};
    EXPECT_EQ(lay_out_mat(2, sizes, CV_8U, false, nullptr), 24U);
    EXPECT_EQ(lay_out_mat(2, sizes, CV_8U, true, nullptr), 24U);
}

TEST(MatLayout, StridesSmallerThanARowAreRejected) {
    const int sizes[] = {4, 8};
    std::size_t step[] = {7 * sizeof(float), sizeof(float)};
    EXPECT_THROW(lay_out_mat(2, sizes, CV_32F, true, step), cv::Exception);
}

}  // namespace
}  // namespace tensorpool
