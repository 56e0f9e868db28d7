#pragma once

/// @file
/// What is done to a photograph: a raw developer's steps, each over the whole picture in floats.

#include <opencv2/core.hpp>

#include "develop/operators.hpp"

namespace tensorpool::photos {

/// Which of denoise and boost_detail: those of operators.hpp, or of frugal_operators.hpp.
enum class Frugal { no, yes };

/// Linear light, white balance, denoising, sharpening, detail boost over a pyramid, and back.
/// `picture` is 8-bit BGR of any size, and so is the result. The same picture gives the same result
/// bit for bit as long as cv::getNumThreads() is the same. Makes some 45 temporaries and
/// holds up to ten times the picture's size in floats at once, or the frugal ones five times.
cv::Mat develop(const cv::Mat& picture, const Development& how = {}, Frugal frugal = Frugal::no);

}  // namespace tensorpool::photos
