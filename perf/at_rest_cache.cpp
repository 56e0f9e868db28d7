#include "at_rest_cache.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace perf {
namespace {

constexpr std::size_t lanes = 16;

float to_float(Bf16 number) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(number) << 16);
}

float dot(const Bf16* key, const float* query, std::size_t width) {
    std::array<float, lanes> parts = {};
    for (std::size_t i = 0; i < width; i += lanes)
        for (std::size_t k = 0; k < lanes; ++k) parts[k] += to_float(key[i + k]) * query[i + k];
    float sum = 0;
    for (const float part : parts) sum += part;
    return sum;
}

}  // namespace

// The sum of four even numbers is nearly normal, and takes one draw.
void CacheModel::fill(std::span<Bf16> numbers) {
    for (Bf16& number : numbers) {
        const std::uint64_t bits = generator_();
        const auto sum = static_cast<float>(bits & 0xFFFF) +
                         static_cast<float>(bits >> 16 & 0xFFFF) +
                         static_cast<float>(bits >> 32 & 0xFFFF) + static_cast<float>(bits >> 48);
        const float value = (sum - 131070.0F) / 37837.0F;
        number = static_cast<Bf16>(std::bit_cast<std::uint32_t>(value) >> 16);
    }
}

std::uint64_t CacheModel::attend(std::span<Bf16> tensor, std::size_t token, std::uint64_t hash) {
    const std::size_t width = shape_.width;
    Bf16* const keys = tensor.data();
    Bf16* const values = keys + shape_.positions * width;
    const std::size_t oldest = token % shape_.positions * width;
    fill({keys + oldest, width});
    fill({values + oldest, width});
    std::vector<float> query(width);
    for (std::size_t i = 0; i < width; ++i) query[i] = to_float(keys[oldest + i]);
    float sum = 0;
    for (std::size_t at = 0; at < shape_.positions; ++at) {
        weights_[at] = std::exp(dot(keys + at * width, query.data(), width) / 64);
        sum += weights_[at];
    }
    std::vector<float> result(width);
    for (std::size_t at = 0; at < shape_.positions; ++at) {
        const float weight = weights_[at] / sum;
        for (std::size_t i = 0; i < width; ++i)
            result[i] += weight * to_float(values[at * width + i]);
    }
    for (const float value : result)
        hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
    return hash;
}

}  // namespace perf
