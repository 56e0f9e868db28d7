#pragma once

/// @file
/// Reads and writes JPEG files, through TurboJPEG.

#include <filesystem>

#include <opencv2/core.hpp>

namespace tensorpool::photos {

/// Reads a picture as 8-bit BGR. Throws std::runtime_error with the reason if the file cannot be
/// read or is not a complete JPEG picture. Exceptions of cv::Mat, for lack of memory, pass through.
cv::Mat read_jpeg(const std::filesystem::path& file);

/// Writes an 8-bit BGR picture, replacing the file. `quality` is 1 to 100. Throws
/// std::runtime_error with the reason.
void write_jpeg(const std::filesystem::path& file, const cv::Mat& picture, int quality = 92);

}  // namespace tensorpool::photos
