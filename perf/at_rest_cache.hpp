#pragma once

/// A cache of the keys and values of sequences in BF16, as a server of language models keeps them.

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace perf {

using Bf16 = std::uint16_t;

/// The size of the cache: a tensor for each sequence and layer, of `positions` keys of `width`
/// numbers and as many values.
struct CacheShape {
    std::size_t sequences;
    std::size_t layers;
    std::size_t positions;
    std::size_t width;

    std::size_t tensor_bytes() const { return 2 * positions * width * sizeof(Bf16); }
    std::size_t bytes() const { return sequences * layers * tensor_bytes(); }
};

/// A layer of the model: attention of one query to all positions, and new keys and values. The
/// numbers are the same in each run.
class CacheModel {
public:
    explicit CacheModel(const CacheShape& shape) : shape_(shape), weights_(shape.positions) {}

    /// Fills memory with numbers that are distributed as keys and values are: nearly normally.
    void fill(std::span<Bf16> numbers);
    /// Makes a token: replaces the oldest position of a tensor, whose number is `token` modulo the
    /// positions, and attends to all. Returns `hash` with the result added.
    std::uint64_t attend(std::span<Bf16> tensor, std::size_t token, std::uint64_t hash);

private:
    CacheShape shape_;
    std::vector<float> weights_;
    std::mt19937_64 generator_{1};
};

}  // namespace perf
