#pragma once

/// @file
/// What is done to a photograph: a raw developer's steps, each over the whole picture in floats.

#include <opencv2/core.hpp>

namespace tensorpool::photos {

/// How strongly each step works.
struct Development {
    double noise_variance = 2e-4;  ///< what varies less, in linear light from 0 to 1, is smoothed
    int noise_window = 9;          ///< pixels on a side
    double sharpen_sigma = 1.0;    ///< pixels
    double sharpen_amount = 0.6;
    int detail_levels = 4;  ///< of the pyramid
    double detail_gain = 1.2;
};

/// Linear light, white balance, denoising, sharpening, detail boost over a pyramid, and back.
/// `picture` is 8-bit BGR of any size, and so is the result. The same picture gives the same result
/// bit for bit as long as cv::getNumThreads() is the same. Makes some 45 temporaries and
/// holds up to ten times the picture's size in floats at once.
cv::Mat develop(const cv::Mat& picture, const Development& how = {});

}  // namespace tensorpool::photos
