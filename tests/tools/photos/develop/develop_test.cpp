#include "develop/develop.hpp"

#include <gtest/gtest.h>

#include <opencv2/imgproc.hpp>

namespace tensorpool::photos {
namespace {

double contrast(const cv::Mat& picture) {
    cv::Scalar mean, deviation;
    cv::meanStdDev(picture, mean, deviation);
    return deviation[0];
}

TEST(Develop, KeepsSizeAndTypeOfPicturesOfAnySize) {
    for (const cv::Size size : {cv::Size(1, 1), cv::Size(2, 1), cv::Size(1, 7), cv::Size(17, 33)}) {
        const cv::Mat picture(size, CV_8UC3, cv::Scalar(10, 100, 200));
        const cv::Mat result = develop(picture);
        EXPECT_EQ(result.size(), size);
        EXPECT_EQ(result.type(), CV_8UC3);
    }
}

TEST(Develop, BlackStaysBlackAndGreyStaysGrey) {
    const cv::Mat black(40, 40, CV_8UC3, cv::Scalar::all(0));
    EXPECT_EQ(cv::norm(develop(black), black, cv::NORM_INF), 0);
    const cv::Mat grey(40, 40, CV_8UC3, cv::Scalar::all(128));
    EXPECT_LE(cv::norm(develop(grey), grey, cv::NORM_INF), 1);
}

TEST(Develop, ColourCastsBecomeWeaker) {
    const cv::Mat blueish(40, 40, CV_8UC3, cv::Scalar(160, 100, 100));
    const cv::Scalar mean = cv::mean(develop(blueish));
    EXPECT_LT(mean[0], 160);
    EXPECT_GT(mean[1], 100);
    EXPECT_GT(mean[0], mean[1]);
}

TEST(Develop, NoiseShrinksAndEdgesStay) {
    cv::Mat noise(200, 200, CV_8UC3);
    cv::randu(noise, 124, 133);
    EXPECT_LT(contrast(develop(noise)), 0.7 * contrast(noise));

    cv::Mat edge(200, 200, CV_8UC3, cv::Scalar::all(60));
    edge.colRange(100, 200).setTo(cv::Scalar::all(200));
    EXPECT_GE(contrast(develop(edge)), contrast(edge));
}

TEST(Develop, FrugalOperatorsGiveAnIdenticalResult) {
    cv::Mat picture(61, 83, CV_8UC3);
    cv::randu(picture, 0, 256);
    EXPECT_EQ(cv::norm(develop(picture), develop(picture, {}, Frugal::yes), cv::NORM_INF), 0);
}

}  // namespace
}  // namespace tensorpool::photos
