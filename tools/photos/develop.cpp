#include "develop.hpp"

#include <cmath>
#include <vector>

#include <opencv2/imgproc.hpp>

namespace tensorpool::photos {
namespace {

using cv::Mat;

/// Floats from 0 to 1, squared: near enough to undoing the display's gamma of 2.2.
Mat linear_light(const Mat& picture) {
    Mat display;
    picture.convertTo(display, CV_32F, 1.0 / 255);
    return display.mul(display);
}

/// A quarter of the way to where all colours have the same mean.
Mat balance_white(const Mat& light) {
    const cv::Scalar mean = cv::mean(light);
    const double grey = (mean[0] + mean[1] + mean[2]) / 3;
    cv::Scalar gain;
    for (int colour = 0; colour < 3; ++colour) {
        gain[colour] = mean[colour] > 0 ? std::pow(grey / mean[colour], 0.25) : 1.0;
    }
    Mat balanced;
    cv::multiply(light, gain, balanced);
    return balanced;
}

Mat box_mean(const Mat& light, int window) {
    Mat mean;
    cv::blur(light, mean, {window, window});
    return mean;
}

/// Smooths what varies little and keeps edges. He, Sun and Tang, "Guided Image Filtering", IEEE
/// PAMI 2013, the picture being its own guide.
Mat denoise(const Mat& light, const Development& how) {
    const Mat mean = box_mean(light, how.noise_window);
    const Mat mean_of_squares = box_mean(light.mul(light), how.noise_window);
    const Mat variance = mean_of_squares - mean.mul(mean);
    const Mat kept = variance / (variance + cv::Scalar::all(how.noise_variance));
    const Mat offset = mean - kept.mul(mean);
    return box_mean(kept, how.noise_window).mul(light) + box_mean(offset, how.noise_window);
}

/// Unsharp mask.
Mat sharpen(const Mat& light, const Development& how) {
    Mat blurred;
    cv::GaussianBlur(light, blurred, {}, how.sharpen_sigma);
    return light + how.sharpen_amount * (light - blurred);
}

Mat halved(const Mat& light) {
    Mat half;
    cv::pyrDown(light, half);
    return half;
}

Mat doubled(const Mat& light, cv::Size size) {
    Mat twice;
    cv::pyrUp(light, twice, size);
    return twice;
}

/// Takes the picture apart by size of detail and puts it together with more of each. Burt and
/// Adelson, "The Laplacian Pyramid as a Compact Image Code", 1983.
Mat boost_detail(const Mat& sharp, const Development& how) {
    Mat light = sharp;
    std::vector<Mat> details;
    for (int level = 0; level < how.detail_levels; ++level) {
        const Mat coarse = halved(light);
        details.push_back(light - doubled(coarse, light.size()));
        light = coarse;
    }
    while (!details.empty()) {
        light = doubled(light, details.back().size()) + details.back() * how.detail_gain;
        details.pop_back();
    }
    return light;
}

Mat display_light(const Mat& light) {
    Mat display;
    cv::sqrt(cv::max(light, 0.0), display);
    Mat picture;
    display.convertTo(picture, CV_8U, 255);
    return picture;
}

}  // namespace

Mat develop(const Mat& picture, const Development& how) {
    Mat light = linear_light(picture);
    light = balance_white(light);
    light = denoise(light, how);
    light = sharpen(light, how);
    light = boost_detail(light, how);
    return display_light(light);
}

}  // namespace tensorpool::photos
