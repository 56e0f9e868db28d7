#pragma once

/// @file
/// How much memory a transformer needs, and what would fit. Pure arithmetic: sizes are bytes, and
/// sums and products that overflow become the largest number.

#include <tensorpool/data_type.hpp>
#include <tensorpool/model_hyperparameters.hpp>

namespace tensorpool {

/// A type of the elements of a key-value cache.
struct KvCacheType {
    /// The name, as of llama.cpp's --cache-type-k: "f16", "q8_0".
    std::string_view name;
    /// How the elements are stored.
    DataType data;
    /// Returns whether elements are stored in blocks.
    bool is_quantised() const noexcept { return data.code == DataCode::ggml_block; }
    /// Returns whether two types are equal.
    friend bool operator==(const KvCacheType&, const KvCacheType&) = default;
};
/// Returns all types that a key-value cache may have.
TENSORPOOL_API std::span<const KvCacheType> kv_cache_types() noexcept;
/// Returns the type with this name, or nullptr.
TENSORPOOL_API const KvCacheType* find_kv_cache_type(std::string_view name) noexcept;

/// How a model is to be run.
struct InferencePlan {
    /// The positions of each sequence.
    std::uint64_t context = 4096;
    /// The tokens computed at once (llama.cpp's --ubatch-size).
    std::uint64_t batch = 512;
    /// The sequences at the same time.
    std::uint64_t sequences = 1;
    /// The type of the key-value cache. Default: f16.
    KvCacheType cache = {"f16", {.code = DataCode::floating, .bits = 16}};
    /// Whether attention is computed without a matrix of all scores.
    bool flash_attention = true;
    /// Counts like llama.cpp's --n-gpu-layers: first the output, then the layers from the last one
    /// back. The number of layers plus one means all.
    std::uint64_t layers_on_device = 0;
    /// Returns whether two plans are equal.
    friend bool operator==(const InferencePlan&, const InferencePlan&) = default;
};

/// The memory that one side, the host or the device, needs.
struct MemoryNeed {
    /// For weights.
    std::uint64_t weights = 0;
    /// For the key-value cache.
    std::uint64_t cache = 0;
    /// For what is alive at once while a batch is computed.
    std::uint64_t compute = 0;
    /// Returns the sum.
    TENSORPOOL_API std::uint64_t total() const noexcept;
};
/// The memory that a model needs.
struct MemoryEstimate {
    /// On the host.
    MemoryNeed host;
    /// On the device.
    MemoryNeed device;
};
/// The memory that is available.
struct MemoryRoom {
    /// On the host.
    std::uint64_t host = 0;
    /// On the device.
    std::uint64_t device = 0;
};

/// Returns the memory that a model needs for its weights, its key-value cache and its computation.
/// Embeddings stay on the host. Throws std::invalid_argument, which names it, for a type of cache
/// whose elements have no size: no type, or a number that ggml has not assigned.
TENSORPOOL_API MemoryEstimate estimate_memory(const ModelHyperparameters& model,
                                              const ModelWeights& weights,
                                              const InferencePlan& plan);
/// Returns whether both sides have room for the estimate.
TENSORPOOL_API bool fits(const MemoryEstimate& estimate, const MemoryRoom& room) noexcept;
/// Returns why the model cannot have the plan's type of cache, as a sentence; "" if it can.
TENSORPOOL_API std::string problem_of_cache(const ModelHyperparameters& model,
                                            const InferencePlan& plan);

/// Returns the number of positions in the cache of a layer with this window (0: no window).
/// llama.cpp rounds the context up to a multiple of 256, and adds the current batch to a window:
/// size_swa of llama_kv_cache_iswa (src/llama-kv-cache-iswa.cpp).
TENSORPOOL_API std::uint64_t cache_cells(std::uint64_t window, const InferencePlan& plan);
/// Returns the bytes of keys and values of one layer, for all sequences. Each position has
/// key_value_heads × (key_length + value_length) elements. Throws std::invalid_argument, which
/// names it, for a type of cache whose elements have no size: no type, or a number that ggml has
/// not assigned.
TENSORPOOL_API std::uint64_t layer_cache_bytes(const ModelHyperparameters& model,
                                               const AttentionLayer& layer,
                                               const InferencePlan& plan);
/// Returns the maximum bytes alive at once in the attention of a batch of `b` tokens, in 32-bit
/// floats: b × (2 embedding + 2 heads × key_length), the mask b × context, and the scores
/// heads × b × context without flash attention or half a mask with it.
///
/// A side needs the maximum over the phases that it computes, as reserved by graph_reserve of
/// llama.cpp (src/llama-context.cpp). The host needs at least the embeddings of the batch, the
/// mask, and the logits of the last token of each sequence. For comparison, llama.cpp prints as
/// "compute buffer size": for Llama 3 8B with context 8192 and without flash attention 560.00 MiB
/// (and 24.01 MiB on the host), with context 512 258.50 MiB; for Qwen3 0.6B 300.75 MiB of logits.
TENSORPOOL_API std::uint64_t attention_bytes(const ModelHyperparameters& model,
                                             const InferencePlan& plan);
/// Returns the maximum bytes alive at once in the feed-forward part of a batch of `b` tokens, in
/// 32-bit floats: b × (2 embedding + 2 feed_forward), the mask, and with experts also their
/// results, b × experts_used × embedding.
TENSORPOOL_API std::uint64_t feed_forward_bytes(const ModelHyperparameters& model,
                                                const InferencePlan& plan);
/// Returns the maximum bytes alive at once in the output of a batch of `b` tokens, in 32-bit
/// floats: b × (embedding + vocabulary).
TENSORPOOL_API std::uint64_t output_bytes(const ModelHyperparameters& model,
                                          const InferencePlan& plan);

/// A plan that fits, and what it needs.
struct PlanSuggestion {
    /// The plan.
    InferencePlan plan;
    /// What it needs.
    MemoryEstimate estimate;
};

/// Searches plans for which there is room.
class TENSORPOOL_API PlanFitter {
public:
    /// Searches for this model in this room. `model` and `weights` must outlive the object.
    PlanFitter(const ModelHyperparameters& model, const ModelWeights& weights, MemoryRoom room)
        : model_(model), weights_(weights), room_(room) {}

    /// Returns whether the plan fits and the model can have its type of cache.
    bool fits(const InferencePlan& plan) const;
    /// Returns the largest multiple of 256, up to `max`, that fits in place of the plan's context;
    /// 0 if there is none.
    std::uint64_t largest_context(const InferencePlan& plan, std::uint64_t max) const;
    /// Returns the largest number of layers on the device, at most that of the plan, for which both
    /// sides have room; the plan's number if there is none.
    std::uint64_t max_layers(const InferencePlan& plan) const;
    /// Returns plans that fit: those with a single change, or with several changes if there are
    /// none. Empty if nothing fits.
    std::vector<PlanSuggestion> suggestions(const InferencePlan& plan) const;

private:
    using Suggestions = std::vector<PlanSuggestion>;
    void add(Suggestions& list, const InferencePlan& request, const InferencePlan& plan) const;
    void add_single_changes(Suggestions& list, const InferencePlan& request) const;
    void add_several_changes(Suggestions& list, const InferencePlan& request) const;

    const ModelHyperparameters& model_;
    const ModelWeights& weights_;
    MemoryRoom room_;
};

}  // namespace tensorpool
