#pragma once

/// Photographs as floats, and the steps of workload E (perf/workloads/e_photos.py) in C++.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perf {

/// A decoded photograph: three bytes for each pixel.
struct Photograph {
    std::size_t height;
    std::size_t width;
    std::vector<std::uint8_t> bytes;
};

/// Returns the photographs that `perf/workloads/e_photos.py --prepare` decoded to `folder`, ordered
/// by name; none if there are none.
std::vector<Photograph> prepared_photographs(const char* folder);
/// Returns `count` pictures with gradients and noise.
std::vector<Photograph> drawn_photographs(std::size_t count);

/// A picture of three floats for each pixel.
struct Image {
    std::size_t height;
    std::size_t width;
    std::span<float> values;
};

/// Converts bytes to numbers from 0 to 1.
void to_floats(const Photograph& photograph, std::span<float> values);
/// Applies the gray-world assumption.
void white_balance(const Image& image);
/// Moves pixels towards the blur where the difference is noise. `rows` and `blurred` are temporary
/// pictures of the same size.
void denoise(const Image& image, std::span<float> rows, std::span<float> blurred);
/// Sharpens by the difference from a blur. Takes the same temporary pictures as `denoise`.
void sharpen(const Image& image, std::span<float> rows, std::span<float> blurred);
/// Moves lightness towards an even histogram.
void curve_of_histogram(const Image& image);
/// Applies an S-shaped curve.
void tone_curve(const Image& image);
/// Returns a hash of a picture as bytes, added to `hash`.
std::uint64_t hash_of_bytes(std::span<const float> values, std::uint64_t hash);

}  // namespace perf
