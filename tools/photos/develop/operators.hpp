#pragma once

/// @file
/// The steps of a raw developer, each over the whole picture.

#include <opencv2/core.hpp>

namespace tensorpool::photos {

/// The strength of each step.
struct Development {
    double noise_variance = 2e-4;  ///< smaller variance, in linear light from 0 to 1, is smoothed
    int noise_window = 9;          ///< width in pixels
    double sharpen_sigma = 1.0;    ///< pixels
    double sharpen_amount = 0.6;
    int detail_levels = 4;  ///< of the pyramid, at least 1
    double detail_gain = 1.2;
};

/// Reads all of `input` and writes to `result`, a different cv::Mat. A result of the right size and
/// type keeps its memory. Pictures are 8-bit BGR; light is three floats per pixel. Temporaries come
/// from OpenCV's default allocator and are freed on return.
using Operator = void(const cv::Mat& input, const Development& how, cv::Mat& result);

/// Floats from 0 to 1, squared, which approximates the inverse of the display's gamma of 2.2.
Operator linear_light;
/// Scales the colours a quarter of the way to equal means.
Operator balance_white;
/// Smooths areas of little variance and keeps edges. He, Sun and Tang, "Guided Image Filtering",
/// IEEE PAMI 2013, with the picture as its own guide.
Operator denoise;
/// Unsharp mask.
Operator sharpen;
/// Splits the picture by size of detail, and reassembles it with more of each. Burt and Adelson,
/// "The Laplacian Pyramid as a Compact Image Code", 1983.
Operator boost_detail;
/// Converts light to a picture that a display can show.
Operator display_light;

/// Like `denoise`, with an identical result. Overwrites what is no longer needed; within a
/// MatScope, the temporaries of one expression end with a scope of their own. Holds at most 3
/// pictures in floats at once, where `denoise` in one scope would hold 12.
Operator denoise_frugally;

/// Like `boost_detail`, with an identical result. Reassembles the picture in the memory of its
/// parts. Holds 1.7 pictures in floats, where `boost_detail` in one scope would hold 4.6.
Operator boost_detail_frugally;

}  // namespace tensorpool::photos
