#include "develop/develop.hpp"

#include <utility>

#include "develop/frugal_operators.hpp"

namespace tensorpool::photos {

cv::Mat develop(const cv::Mat& picture, const Development& how, Frugal frugal) {
    const bool less = frugal == Frugal::yes;
    cv::Mat light = picture;
    for (Operator* const step :
         {linear_light, balance_white, less ? denoise_frugally : denoise, sharpen,
          less ? boost_detail_frugally : boost_detail, display_light}) {
        cv::Mat result;
        step(light, how, result);
        light = std::move(result);
    }
    return light;
}

}  // namespace tensorpool::photos
