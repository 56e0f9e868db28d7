#pragma once

/// @file
/// The steps of a raw developer, each over the whole picture.

#include <opencv2/core.hpp>

namespace tensorpool::photos {

/// How strongly each step works.
struct Development {
    double noise_variance = 2e-4;  ///< what varies less, in linear light from 0 to 1, is smoothed
    int noise_window = 9;          ///< pixels on a side
    double sharpen_sigma = 1.0;    ///< pixels
    double sharpen_amount = 0.6;
    int detail_levels = 4;  ///< of the pyramid, at least 1
    double detail_gain = 1.2;
};

/// Reads all of `input` and puts its work into `result`, another cv::Mat: one that has the right
/// size and type already keeps its memory. Pictures are 8-bit BGR, light is three floats a pixel.
/// What it needs meanwhile comes from OpenCV's default allocator and is gone when it returns.
using Operator = void(const cv::Mat& input, const Development& how, cv::Mat& result);

/// Floats from 0 to 1, squared: near enough to undoing the display's gamma of 2.2.
Operator linear_light;
/// A quarter of the way to where all colours have the same mean.
Operator balance_white;
/// Smooths what varies little and keeps edges. He, Sun and Tang, "Guided Image Filtering", IEEE
/// PAMI 2013, the picture being its own guide.
Operator denoise;
/// Unsharp mask.
Operator sharpen;
/// Takes the picture apart by size of detail and puts it together with more of each. Burt and
/// Adelson, "The Laplacian Pyramid as a Compact Image Code", 1983.
Operator boost_detail;
/// A picture that a display can show.
Operator display_light;

}  // namespace tensorpool::photos
