#pragma once

/// @file
/// Estimates how much memory a transformer needs for its weights, its key-value cache and its
/// computation. Pure arithmetic: sizes are in bytes, and sums that overflow become `max_number`.

#include <cstdint>
#include <vector>

#include "model/estimate/cache_type.hpp"
#include "model/estimate/hyperparameters.hpp"

namespace tensorpool::command::model {

/// Bytes of the weights in the file, by the part of the model that uses them.
struct Weights {
    std::uint64_t embeddings = 0;
    std::vector<std::uint64_t> layers;
    std::uint64_t output = 0;
    std::uint64_t other = 0;
    bool tied = false;  ///< the output uses the embeddings; on the device it needs a copy
    std::uint64_t total() const noexcept;
};

struct Plan {
    std::uint64_t context = 4096;  ///< positions of each sequence
    std::uint64_t batch = 512;     ///< tokens computed at once (llama.cpp's --ubatch-size)
    std::uint64_t sequences = 1;
    CacheType cache = cache_types[1];
    bool flash_attention = true;
    /// Counts like llama.cpp's --n-gpu-layers: first the output, then the layers from the last one
    /// back. The number of layers plus one means all.
    std::uint64_t layers_on_device = 0;
};

/// The memory that one side, the host or the device, needs.
struct Need {
    std::uint64_t weights = 0;
    std::uint64_t cache = 0;
    std::uint64_t compute = 0;
    std::uint64_t total() const noexcept;
};

struct Estimate {
    Need host;
    Need device;
};

/// Returns the number of positions in the cache of a layer with this window (0: no window).
/// llama.cpp rounds the context up to a multiple of 256, and adds the current batch to a window:
/// size_swa of llama_kv_cache_iswa (src/llama-kv-cache-iswa.cpp).
std::uint64_t cache_cells(std::uint64_t window, const Plan& plan);

/// Returns the bytes of keys and values of one layer, for all sequences. Each position has
/// key_value_heads × (key_length + value_length) elements.
std::uint64_t layer_cache_bytes(const Hyperparameters& model, const AttentionLayer& layer,
                                const Plan& plan);

/// Returns the maximum bytes alive at once while a batch of `b` tokens is computed, as reserved by
/// graph_reserve of llama.cpp (src/llama-context.cpp); all in 32-bit floats:
///
///   attention     b × (2 embedding + 2 heads × key_length) + the mask b × context, and
///                 without flash attention the scores heads × b × context, with it half a mask more
///   feed-forward  b × (2 embedding + 2 feed_forward) + the mask; with experts also their results,
///                 b × experts_used × embedding
///   output        b × (embedding + vocabulary)
///
/// A side needs the maximum over the phases that it computes. The host needs at least the
/// embeddings of the batch, the mask, and the logits of the last token of each sequence. For
/// comparison, llama.cpp prints as "compute buffer size": for Llama 3 8B with context 8192 and
/// without flash attention 560.00 MiB (and 24.01 MiB on the host), with context 512 258.50 MiB;
/// for Qwen3 0.6B 300.75 MiB of logits.
std::uint64_t attention_bytes(const Hyperparameters& model, const Plan& plan);
std::uint64_t feed_forward_bytes(const Hyperparameters& model, const Plan& plan);
std::uint64_t output_bytes(const Hyperparameters& model, const Plan& plan);

/// Returns the complete estimate. Embeddings stay on the host.
Estimate estimate(const Hyperparameters& model, const Weights& weights, const Plan& plan);

/// Returns why the model cannot have a cache of this type, as a sentence; "" if it can.
std::string problem_of_cache(const Hyperparameters& model, const Plan& plan);

}  // namespace tensorpool::command::model
