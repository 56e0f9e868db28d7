#include "develop/operators.hpp"

#include <gtest/gtest.h>

namespace tensorpool::photos {
namespace {

cv::Mat noise(int type) {
    cv::Mat picture(61, 83, type);
    cv::randu(picture, 0, type == CV_8UC3 ? 256 : 1);
    return picture;
}

TEST(Operators, AResultOfTheRightSizeAndTypeKeepsItsMemory) {
    const auto keeps = [](Operator* work, const cv::Mat& input, int type) {
        cv::Mat result(input.size(), type);
        const uchar* const data = result.data;
        work(input, {}, result);
        return result.data == data;
    };
    EXPECT_TRUE(keeps(linear_light, noise(CV_8UC3), CV_32FC3));
    for (Operator* const work : {balance_white, denoise, sharpen, boost_detail}) {
        EXPECT_TRUE(keeps(work, noise(CV_32FC3), CV_32FC3));
    }
    EXPECT_TRUE(keeps(display_light, noise(CV_32FC3), CV_8UC3));
}

TEST(Operators, OneLevelOfDetailIsEnough) {
    const cv::Mat grey(5, 7, CV_32FC3, cv::Scalar::all(0.5));
    cv::Mat result;
    boost_detail(grey, {.detail_levels = 1}, result);
    EXPECT_LT(cv::norm(result, grey, cv::NORM_INF), 1e-6);
}

}  // namespace
}  // namespace tensorpool::photos
