#pragma once

/// @file
/// Develops a photograph: the steps of a raw developer, each over the whole picture in floats.

#include <opencv2/core.hpp>

#include "develop/operators.hpp"

namespace tensorpool::photos {

/// Which denoise and boost_detail are used: those of operators.hpp, or those of
/// frugal_operators.hpp.
enum class Frugal { no, yes };

/// Converts to linear light, balances white, denoises, sharpens, boosts detail over a pyramid, and
/// converts back. `picture` is 8-bit BGR of any size, and so is the result. The same picture gives
/// an identical result as long as cv::getNumThreads() is the same. Makes about 45 temporaries and
/// holds up to ten times the picture's size in floats at once, or five times with the frugal
/// operators.
cv::Mat develop(const cv::Mat& picture, const Development& how = {}, Frugal frugal = Frugal::no);

}  // namespace tensorpool::photos
