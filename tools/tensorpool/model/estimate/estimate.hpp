#pragma once

/// @file
/// How much memory a transformer wants: its weights, its key-value cache and what is computed with.
/// Pure arithmetic; sizes are bytes, and those that fit into no number are `endless`.

#include <cstdint>
#include <vector>

#include "model/estimate/cache_type.hpp"
#include "model/estimate/hyperparameters.hpp"

namespace tensorpool::command::model {

/// As they lie in the file, by where they are used.
struct Weights {
    std::uint64_t embeddings = 0;
    std::vector<std::uint64_t> layers;
    std::uint64_t output = 0;
    std::uint64_t other = 0;
    bool tied = false;  ///< the output uses the embeddings: where it is on the device, a copy
    std::uint64_t total() const noexcept;
};

struct Plan {
    std::uint64_t context = 4096;  ///< positions of each sequence
    std::uint64_t batch = 512;     ///< tokens computed at once (llama.cpp's --ubatch-size)
    std::uint64_t sequences = 1;
    CacheType cache = cache_types[1];
    bool flash_attention = true;
    /// As llama.cpp's --n-gpu-layers counts: the first is the output, then the layers from the last
    /// one back; as many as there are layers and one more: all.
    std::uint64_t layers_on_device = 0;
};

/// What one side, the host or the device, has to hold.
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

/// Positions for which the cache has room in a layer with this window (0: none). llama.cpp rounds
/// the context up to a multiple of 256, and to a window adds the batch that is being computed:
/// llama_kv_cache_iswa's size_swa (src/llama-kv-cache-iswa.cpp).
std::uint64_t cache_cells(std::uint64_t window, const Plan& plan);

/// Keys and values of one layer, for all sequences: each position has key_value_heads × key_length
/// and × value_length elements.
std::uint64_t layer_cache_bytes(const Hyperparameters& model, const AttentionLayer& layer,
                                const Plan& plan);

/// What is alive at once at most while a batch of `b` tokens goes through the graph, as
/// llama.cpp's graph_reserve (src/llama-context.cpp) makes room for it; all in 32 bit floats:
///
///   attention     b × (2 embedding + 2 heads × key_length) + the mask b × context, and
///                 without flash attention the scores heads × b × context, with it half a mask more
///   feed-forward  b × (2 embedding + 2 feed_forward) + the mask; with experts also what each
///                 gives back, b × experts_used × embedding
///   output        b × (embedding + vocabulary)
///
/// The largest of the phases that a side computes; the host has at least the embeddings of the
/// batch and the mask, and what is read: the logits of each sequence's last token. Against what
/// llama.cpp prints as its "compute buffer size": Llama 3 8B, context 8192, no flash attention:
/// 560.00 MiB (and 24.01 MiB on the host); 512: 258.50 MiB; Qwen3 0.6B: 300.75 MiB of logits.
std::uint64_t attention_bytes(const Hyperparameters& model, const Plan& plan);
std::uint64_t feed_forward_bytes(const Hyperparameters& model, const Plan& plan);
std::uint64_t output_bytes(const Hyperparameters& model, const Plan& plan);

/// Where everything is put together. Embeddings stay on the host.
Estimate estimate(const Hyperparameters& model, const Weights& weights, const Plan& plan);

/// "" or why a cache of this type cannot be had for this model: a sentence.
std::string problem_of_cache(const Hyperparameters& model, const Plan& plan);

}  // namespace tensorpool::command::model
