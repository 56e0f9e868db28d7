#include "at_rest_photographs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace perf {
namespace {

constexpr std::size_t channels = 3;
constexpr std::size_t bins = 256;

/// Reads a .npy file of bytes, whose header is text with the shape `(height, width, 3)`. Returns an
/// empty picture for any other content.
Photograph read_photograph(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::array<char, 128> header = {};
    file.read(header.data(), header.size());
    const std::string text(header.begin(), header.end());
    const std::size_t shape = text.find("'shape': (");
    Photograph photograph = {};
    if (shape == std::string::npos || std::sscanf(text.c_str() + shape, "'shape': (%zu, %zu, 3)",
                                                  &photograph.height, &photograph.width) != 2)
        return {};
    photograph.bytes.assign(std::istreambuf_iterator<char>(file), {});
    return photograph.bytes.size() == photograph.height * photograph.width * channels
               ? photograph
               : Photograph();
}

/// Blurs with binomial weights: along rows into `rows`, then along columns into `blurred`.
template <std::size_t radius>
void blur(const Image& image, std::span<float> rows, std::span<float> blurred) {
    constexpr std::array<float, 3> weights =
        radius == 1 ? std::array{0.5F, 0.25F, 0.0F} : std::array{0.375F, 0.25F, 0.0625F};
    const std::size_t row = image.width * channels;
    for (std::size_t y = 0; y < image.height; ++y) {
        const float* const from = &image.values[y * row];
        float* const to = &rows[y * row];
        const auto at_edge = [&](std::size_t i) {
            float sum = weights[0] * from[i];
            for (std::size_t k = 1; k <= radius; ++k) {
                const std::size_t before = i < k * channels ? i % channels : i - k * channels;
                const std::size_t after =
                    i + k * channels < row ? i + k * channels : row - channels + i % channels;
                sum += weights[k] * (from[before] + from[after]);
            }
            return sum;
        };
        constexpr std::size_t edge = radius * channels;
        for (std::size_t i = 0; i < edge; ++i) to[i] = at_edge(i);
        for (std::size_t i = edge; i < row - edge; ++i) {
            float sum = weights[0] * from[i];
            for (std::size_t k = 1; k <= radius; ++k)
                sum += weights[k] * (from[i - k * channels] + from[i + k * channels]);
            to[i] = sum;
        }
        for (std::size_t i = row - edge; i < row; ++i) to[i] = at_edge(i);
    }
    for (std::size_t y = 0; y < image.height; ++y) {
        float* const to = &blurred[y * row];
        for (std::size_t i = 0; i < row; ++i) to[i] = weights[0] * rows[y * row + i];
        for (std::size_t k = 1; k <= radius; ++k) {
            const float* const above = &rows[(y < k ? 0 : y - k) * row];
            const float* const below = &rows[std::min(y + k, image.height - 1) * row];
            for (std::size_t i = 0; i < row; ++i) to[i] += weights[k] * (above[i] + below[i]);
        }
    }
}

float luminance(const float* pixel) {
    return 0.2126F * pixel[0] + 0.7152F * pixel[1] + 0.0722F * pixel[2];
}

std::size_t bin_of(float value) {
    return static_cast<std::size_t>(std::clamp(value, 0.0F, 1.0F) * (bins - 1) + 0.5F);
}

}  // namespace

std::vector<Photograph> prepared_photographs(const char* folder) {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none))
        if (entry.path().extension() == ".npy") files.push_back(entry.path());
    std::ranges::sort(files);
    std::vector<Photograph> photographs;
    for (const auto& file : files) {
        photographs.push_back(read_photograph(file));
        if (photographs.back().bytes.empty()) photographs.pop_back();
    }
    return photographs;
}

std::vector<Photograph> drawn_photographs(std::size_t count) {
    std::mt19937 generator(1);
    std::vector<Photograph> photographs;
    for (std::size_t number = 0; number < count; ++number) {
        Photograph drawn = {.height = 400 + 8 * number, .width = 480, .bytes = {}};
        for (std::size_t y = 0; y < drawn.height; ++y)
            for (std::size_t x = 0; x < drawn.width * channels; ++x)
                drawn.bytes.push_back(
                    static_cast<std::uint8_t>((x / 8 + y / 2 + generator() % 8) % 256));
        photographs.push_back(std::move(drawn));
    }
    return photographs;
}

void to_floats(const Photograph& photograph, std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(photograph.bytes[i]) / 255;
}

void white_balance(const Image& image) {
    std::array<double, channels> sums = {};
    for (std::size_t i = 0; i < image.values.size(); i += channels)
        for (std::size_t k = 0; k < channels; ++k) sums[k] += image.values[i + k];
    const double mean = (sums[0] + sums[1] + sums[2]) / channels;
    std::array<float, channels> gains = {};
    for (std::size_t k = 0; k < channels; ++k)
        gains[k] = static_cast<float>(mean / std::max(sums[k], 1.0));
    for (std::size_t i = 0; i < image.values.size(); i += channels)
        for (std::size_t k = 0; k < channels; ++k) image.values[i + k] *= gains[k];
}

void denoise(const Image& image, std::span<float> rows, std::span<float> blurred) {
    constexpr float strength = 0.02F;
    blur<1>(image, rows, blurred);
    for (std::size_t i = 0; i < image.values.size(); ++i) {
        const float difference = blurred[i] - image.values[i];
        const float relative = difference / strength;
        image.values[i] += difference * std::exp(-relative * relative);
    }
}

void sharpen(const Image& image, std::span<float> rows, std::span<float> blurred) {
    constexpr float amount = 0.6F;
    blur<2>(image, rows, blurred);
    for (std::size_t i = 0; i < image.values.size(); ++i)
        image.values[i] += amount * (image.values[i] - blurred[i]);
}

void curve_of_histogram(const Image& image) {
    constexpr float strength = 0.3F;
    std::array<std::size_t, bins> counts = {};
    for (std::size_t i = 0; i < image.values.size(); i += channels)
        ++counts[bin_of(luminance(&image.values[i]))];
    std::array<float, bins> even = {};
    std::size_t sum = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) {
        sum += counts[bin];
        even[bin] = static_cast<float>(sum * channels) / static_cast<float>(image.values.size());
    }
    for (std::size_t i = 0; i < image.values.size(); i += channels) {
        const float light = luminance(&image.values[i]);
        const float gain = (1 - strength) + strength * even[bin_of(light)] / std::max(light, 0.01F);
        for (std::size_t k = 0; k < channels; ++k) image.values[i + k] *= gain;
    }
}

void tone_curve(const Image& image) {
    for (float& value : image.values) {
        const float bounded = std::clamp(value, 0.0F, 1.0F);
        value = bounded * bounded * (3 - 2 * bounded);
    }
}

std::uint64_t hash_of_bytes(std::span<const float> values, std::uint64_t hash) {
    for (const float value : values) {
        const auto byte = static_cast<std::uint8_t>(std::clamp(value, 0.0F, 1.0F) * 255 + 0.5F);
        hash = (hash ^ byte) * 0x100000001b3;  // FNV-1a
    }
    return hash;
}

}  // namespace perf
