#include "develop.hpp"

#include <utility>

namespace tensorpool::photos {

cv::Mat develop(const cv::Mat& picture, const Development& how) {
    cv::Mat light = picture;
    for (Operator* const step :
         {linear_light, balance_white, denoise, sharpen, boost_detail, display_light}) {
        cv::Mat result;
        step(light, how, result);
        light = std::move(result);
    }
    return light;
}

}  // namespace tensorpool::photos
