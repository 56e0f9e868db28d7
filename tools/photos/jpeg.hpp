#pragma once

/// @file
/// Pictures in JPEG files, through TurboJPEG.

#include <filesystem>

#include <opencv2/core.hpp>

namespace tensorpool::photos {

/// The picture as 8-bit BGR. Throws std::runtime_error with the reason when the file cannot be read
/// or is not a whole JPEG picture, and what cv::Mat throws when there is no memory.
cv::Mat read_jpeg(const std::filesystem::path& file);

/// Writes an 8-bit BGR picture, replacing the file. `quality` is 1 to 100. Throws
/// std::runtime_error with the reason.
void write_jpeg(const std::filesystem::path& file, const cv::Mat& picture, int quality = 92);

}  // namespace tensorpool::photos
