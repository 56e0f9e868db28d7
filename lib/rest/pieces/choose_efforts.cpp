#include "rest/pieces/choose_efforts.hpp"

#include <lz4.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tensorpool::stashing {
namespace {

constexpr std::size_t chunks = 4;
/// The most bytes of a sample. One of several planes needs fewer: it has fewer kinds of bytes.
constexpr std::size_t max_sample_bytes = 8192;
constexpr std::size_t sample_bytes_of_planes = 4096;

/// Decoding costs in nanoseconds for each byte of a plane, and what 1.5 GB/s leaves for all planes
/// beside merging and the checksum: perf/results/stash.md.
constexpr double few_symbols_ns = 0.45;
constexpr double many_symbols_ns = 0.85;
constexpr double lz4_ns = 0.4;
constexpr double budget_ns = 0.5;
/// Up to this entropy, most look-ups of zstd's Huffman decoder yield two bytes.
constexpr double few_symbols_bits = 4.5;
/// Where LZ4 leaves at most this part, zstd's search saves as much again and decodes fast, because
/// its matches are long.
constexpr double repetitive = 0.25;
constexpr double worth_it = 0.97;

/// What a sample says about a plane: the parts that remain, from 0 to 1.
struct Prospects {
    double entropy = 1;
    double lz4 = 1;
};

using Sample = std::array<std::byte, max_sample_bytes>;

/// Copies chunks at equal distances, which have `sample_bytes` bytes, and returns their bytes.
std::size_t take_sample(const std::byte* plane, std::size_t count, std::size_t sample_bytes,
                        Sample& sample) noexcept {
    if (count <= sample_bytes) {
        std::memcpy(sample.data(), plane, count);
        return count;
    }
    const std::size_t chunk_bytes = sample_bytes / chunks;
    const std::size_t distance = (count - chunk_bytes) / (chunks - 1);
    for (std::size_t i = 0; i < chunks; ++i)
        std::memcpy(sample.data() + i * chunk_bytes, plane + i * distance, chunk_bytes);
    return sample_bytes;
}

/// Returns the entropy of the bytes as a part of 8 bits.
double entropy_of(const std::byte* bytes, std::size_t count) noexcept {
    // Equal bytes that follow one another would wait for each other in one table.
    std::array<std::array<std::uint16_t, 256>, 4> frequency = {};
    for (std::size_t i = 0; i < count; ++i)
        ++frequency[i % frequency.size()][static_cast<std::uint8_t>(bytes[i])];
    float sum = 0;
    for (std::size_t i = 0; i < 256; ++i) {
        const auto times = static_cast<float>(frequency[0][i] + frequency[1][i] + frequency[2][i] +
                                              frequency[3][i]);
        if (times > 1) sum += times * std::log2(times);
    }
    const auto total = static_cast<double>(count);
    return (std::log2(total) - sum / total) / 8;
}

bool has_few_symbols(const Prospects& found) noexcept {
    return found.entropy * 8 <= few_symbols_bits;
}

Prospects prospects_of(const std::byte* plane, std::size_t count, std::size_t sample_bytes,
                       void* lz4_state) noexcept {
    Sample sample;
    const std::size_t taken = take_sample(plane, count, sample_bytes, sample);
    Prospects found;
    found.entropy = entropy_of(sample.data(), taken);
    // Few symbols are always cheap enough for an entropy coder, so LZ4 only matters, and need only
    // go on, while it saves more.
    const double most = has_few_symbols(found) ? std::max(found.entropy, repetitive) : 1;
    std::array<char, max_sample_bytes> out;
    const int bytes = LZ4_compress_fast_extState(
        lz4_state, reinterpret_cast<const char*>(sample.data()), out.data(),
        static_cast<int>(taken), static_cast<int>(std::ceil(most * static_cast<double>(taken))), 1);
    if (bytes > 0) found.lz4 = static_cast<double>(bytes) / static_cast<double>(taken);
    return found;
}

struct Choice {
    Effort effort;
    double remains;
    double cost_ns;
};

Choice choose(const Prospects& found) noexcept {
    if (found.lz4 <= repetitive) return {Effort::matches, found.lz4, lz4_ns};
    if (std::min(found.lz4, found.entropy) > worth_it) return {Effort::raw, 1, 0};
    if (found.lz4 <= found.entropy) return {Effort::lz4, found.lz4, lz4_ns};
    return {Effort::entropy, found.entropy,
            has_few_symbols(found) ? few_symbols_ns : many_symbols_ns};
}

}  // namespace

Efforts choose_efforts(const std::byte* planes, std::size_t count, std::size_t width,
                       void* lz4_state) noexcept {
    std::array<Prospects, max_planes> found;
    std::array<Choice, max_planes> choices;
    std::array<std::size_t, max_planes> order;
    const std::size_t sample_bytes = width == 1 ? max_sample_bytes : sample_bytes_of_planes;
    for (std::size_t i = 0; i < width; ++i) {
        found[i] = prospects_of(planes + i * count, count, sample_bytes, lz4_state);
        choices[i] = choose(found[i]);
        order[i] = i;
    }
    std::sort(order.begin(), order.begin() + width, [&](std::size_t a, std::size_t b) {
        return choices[a].remains < choices[b].remains;
    });

    Efforts efforts;
    double left_ns = budget_ns * static_cast<double>(width);
    double remains = 0;
    for (std::size_t i = 0; i < width; ++i) {
        Choice choice = choices[order[i]];
        if (choice.cost_ns > left_ns && found[order[i]].lz4 <= worth_it)
            choice = {Effort::lz4, found[order[i]].lz4, lz4_ns};
        if (choice.cost_ns > left_ns) choice = {Effort::raw, 1, 0};
        efforts.of_plane[order[i]] = choice.effort;
        left_ns -= choice.cost_ns;
        remains += choice.remains;
    }
    efforts.ratio = remains / static_cast<double>(width);
    return efforts;
}

double estimate_entropy(const std::byte* planes, std::size_t count, std::size_t width) noexcept {
    Sample sample;
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i)
        sum += entropy_of(sample.data(),
                          take_sample(planes + i * count, count, sample_bytes_of_planes, sample));
    return sum / static_cast<double>(width);
}

}  // namespace tensorpool::stashing
