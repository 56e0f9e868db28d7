#include "develop/frugal_operators.hpp"

#include <cstddef>
#include <optional>
#include <vector>

#include <opencv2/imgproc.hpp>

#include "develop/mat_scopes.hpp"

namespace tensorpool::photos {

using cv::Mat;

namespace {

/// Temporaries made by `work` end with this scope, if a MatScope is open.
void in_own_scope(const auto& work) {
    std::optional<MatScope> scope;
    if (MatScope::is_open()) scope.emplace();
    work();
}

}  // namespace

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
