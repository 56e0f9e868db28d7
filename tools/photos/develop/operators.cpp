#include "develop/operators.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <opencv2/imgproc.hpp>

#include "develop/context_mat_allocator.hpp"

namespace tensorpool::photos {
namespace {

using cv::Mat;

Mat box_mean(const Mat& light, int window) {
    Mat mean;
    cv::blur(light, mean, {window, window});
    return mean;
}

Mat doubled(const Mat& light, cv::Size size) {
    Mat twice;
    cv::pyrUp(light, twice, size);
    return twice;
}

/// Temporaries made by `work` end with this scope, if a MatScope is open.
void in_own_scope(const auto& work) {
    std::optional<MatScope> scope;
    if (MatScope::is_open()) scope.emplace();
    work();
}

}  // namespace

void linear_light(const Mat& picture, const Development&, Mat& light) {
    Mat display;
    picture.convertTo(display, CV_32F, 1.0 / 255);
    light = display.mul(display);
}

void balance_white(const Mat& light, const Development&, Mat& balanced) {
    const cv::Scalar mean = cv::mean(light);
    const double grey = (mean[0] + mean[1] + mean[2]) / 3;
    cv::Scalar gain;
    for (int colour = 0; colour < 3; ++colour) {
        gain[colour] = mean[colour] > 0 ? std::pow(grey / mean[colour], 0.25) : 1.0;
    }
    cv::multiply(light, gain, balanced);
}

void denoise(const Mat& light, const Development& how, Mat& smooth) {
    const Mat mean = box_mean(light, how.noise_window);
    const Mat mean_of_squares = box_mean(light.mul(light), how.noise_window);
    const Mat variance = mean_of_squares - mean.mul(mean);
    const Mat kept = variance / (variance + cv::Scalar::all(how.noise_variance));
    const Mat offset = mean - kept.mul(mean);
    smooth = box_mean(kept, how.noise_window).mul(light) + box_mean(offset, how.noise_window);
}

void sharpen(const Mat& light, const Development& how, Mat& sharp) {
    Mat blurred;
    cv::GaussianBlur(light, blurred, {}, how.sharpen_sigma);
    sharp = light + how.sharpen_amount * (light - blurred);
}

void boost_detail(const Mat& sharp, const Development& how, Mat& boosted) {
    Mat light = sharp;
    std::vector<Mat> details;
    for (int level = 0; level < how.detail_levels; ++level) {
        Mat coarse;
        cv::pyrDown(light, coarse);
        details.push_back(light - doubled(coarse, light.size()));
        light = coarse;
    }
    for (; !details.empty(); details.pop_back()) {
        const cv::MatExpr finer =
            doubled(light, details.back().size()) + details.back() * how.detail_gain;
        light.release();
        (details.size() == 1 ? boosted : light) = finer;
    }
}

void display_light(const Mat& light, const Development&, Mat& picture) {
    Mat display;
    cv::sqrt(cv::max(light, 0.0), display);
    display.convertTo(picture, CV_8U, 255);
}

void denoise_frugally(const Mat& light, const Development& how, Mat& smooth) {
    const cv::Size window(how.noise_window, how.noise_window);
    const cv::Scalar noise = cv::Scalar::all(how.noise_variance);
    Mat mean, kept(light.size(), light.type());
    cv::blur(light, mean, window);
    in_own_scope([&] { cv::blur(light.mul(light), kept, window); });  // the mean of squares,
    in_own_scope([&] { kept -= mean.mul(mean); });                    // then the variance,
    in_own_scope([&] { kept /= kept + noise; });                      // then the fraction kept,
    in_own_scope([&] { mean -= kept.mul(mean); });                    // then the offset
    cv::blur(kept, smooth, window);
    cv::multiply(smooth, light, smooth);
    cv::blur(mean, kept, window);
    smooth += kept;
}

void boost_detail_frugally(const Mat& sharp, const Development& how, Mat& boosted) {
    const auto levels = static_cast<std::size_t>(how.detail_levels);
    std::vector<Mat> lights(levels + 1), details(levels);
    lights[0] = sharp;
    for (std::size_t i = 0; i < levels; ++i) {
        cv::pyrDown(lights[i], lights[i + 1]);
        cv::pyrUp(lights[i + 1], details[i], lights[i].size());
        cv::subtract(lights[i], details[i], details[i]);
    }
    boosted.create(sharp.size(), sharp.type());
    lights[0] = boosted;
    for (std::size_t i = levels; i-- > 0;) {
        cv::pyrUp(lights[i + 1], lights[i], lights[i].size());
        cv::scaleAdd(details[i], how.detail_gain, lights[i], lights[i]);
    }
}

}  // namespace tensorpool::photos
