#include "model/estimate/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/saturating.hpp"

namespace tensorpool::command::model {
namespace {

constexpr std::uint64_t float_bytes = 4;
// llama.cpp pads the context and the cache of a window to a multiple of this number.
constexpr std::uint64_t cell_multiple = 256;

/// Returns the batch, limited to the tokens of all sequences.
std::uint64_t batch_of(const Plan& plan) {
    return std::min(plan.batch, product(plan.context, plan.sequences));
}

std::uint64_t max_heads(const Hyperparameters& model) {
    std::uint64_t max = 0;
    for (const AttentionLayer& layer : model.layers) max = std::max(max, layer.heads);
    return max;
}

std::uint64_t floats(std::uint64_t one, std::uint64_t other) {
    return product(one, other, float_bytes);
}

std::uint64_t mask_bytes(const Plan& plan) {
    return floats(batch_of(plan), cache_cells(0, plan));
}

/// Returns the bytes that the host prepares for a batch and reads from it.
std::uint64_t exchange_bytes(const Hyperparameters& model, const Plan& plan) {
    return sum(floats(batch_of(plan), model.embedding), mask_bytes(plan),
               floats(plan.sequences, model.vocabulary));
}

/// Layers from `first` on are on the device. If any layer is, the output is too.
struct Split {
    std::size_t first = 0;
    bool output_on_device = false;
};

Split split_of(const Hyperparameters& model, const Plan& plan) {
    const std::size_t layers = model.layers.size();
    const std::uint64_t on_device = std::min<std::uint64_t>(plan.layers_on_device, layers + 1);
    if (on_device == 0) return {layers, false};
    return {layers - static_cast<std::size_t>(on_device - 1), true};
}

void add_layers(Estimate& result, const Hyperparameters& model, const Weights& weights,
                const Plan& plan, std::size_t first) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        Need& side = i < first ? result.host : result.device;
        if (i < weights.layers.size()) side.weights = sum(side.weights, weights.layers[i]);
        side.cache = sum(side.cache, layer_cache_bytes(model, model.layers[i], plan));
    }
    for (std::size_t i = model.layers.size(); i < weights.layers.size(); ++i) {
        result.host.weights = sum(result.host.weights, weights.layers[i]);
    }
}

void add_output(Need& side, const Weights& weights, bool on_device) {
    side.weights = sum(side.weights, weights.output);
    if (weights.tied && on_device) side.weights = sum(side.weights, weights.embeddings);
}

void add_compute(Estimate& result, const Hyperparameters& model, const Plan& plan, Split split) {
    const std::uint64_t layers =
        std::max(attention_bytes(model, plan), feed_forward_bytes(model, plan));
    const std::uint64_t output = output_bytes(model, plan);
    if (split.first > 0) result.host.compute = layers;
    if (split.first < model.layers.size()) result.device.compute = layers;
    Need& last = split.output_on_device ? result.device : result.host;
    last.compute = std::max(last.compute, output);
    const std::uint64_t logits = floats(plan.sequences, model.vocabulary);
    result.host.compute = std::max(sum(result.host.compute, logits), exchange_bytes(model, plan));
}

}  // namespace

std::uint64_t Weights::total() const noexcept {
    std::uint64_t bytes = sum(embeddings, output, other);
    for (const std::uint64_t layer : layers) bytes = sum(bytes, layer);
    return bytes;
}

std::uint64_t Need::total() const noexcept {
    return sum(weights, cache, compute);
}

std::uint64_t cache_cells(std::uint64_t window, const Plan& plan) {
    const std::uint64_t all = round_up(plan.context, cell_multiple);
    if (window == 0) return all;
    return round_up(std::min(all, sum(window, batch_of(plan))), cell_multiple);
}

std::uint64_t layer_cache_bytes(const Hyperparameters& model, const AttentionLayer& layer,
                                const Plan& plan) {
    const std::uint64_t elements =
        product(sum(model.key_length, model.value_length), layer.key_value_heads,
                cache_cells(layer.window, plan), plan.sequences);
    if (elements == max_number) return max_number;
    return product(round_up(elements, plan.cache.elements) / plan.cache.elements, plan.cache.bytes);
}

std::uint64_t attention_bytes(const Hyperparameters& model, const Plan& plan) {
    const std::uint64_t heads = max_heads(model);
    const std::uint64_t vectors =
        sum(product(2, model.embedding), product(2, heads, model.key_length));
    const std::uint64_t mask = mask_bytes(plan);
    const std::uint64_t scores = plan.flash_attention ? mask / 2 : product(heads, mask);
    return sum(floats(batch_of(plan), vectors), mask, scores);
}

std::uint64_t feed_forward_bytes(const Hyperparameters& model, const Plan& plan) {
    const std::uint64_t vectors = sum(product(2, model.embedding), product(2, model.feed_forward),
                                      product(model.experts_used, model.embedding));
    return sum(floats(batch_of(plan), vectors), mask_bytes(plan));
}

std::uint64_t output_bytes(const Hyperparameters& model, const Plan& plan) {
    return floats(batch_of(plan), sum(model.embedding, model.vocabulary));
}

Estimate estimate(const Hyperparameters& model, const Weights& weights, const Plan& plan) {
    const Split split = split_of(model, plan);
    Estimate result;
    result.host.weights = sum(weights.embeddings, weights.other);
    add_layers(result, model, weights, plan, split.first);
    add_output(split.output_on_device ? result.device : result.host, weights,
               split.output_on_device);
    add_compute(result, model, plan, split);
    return result;
}

std::string problem_of_cache(const Hyperparameters& model, const Plan& plan) {
    if (!plan.cache.quantised()) return "";
    if (!plan.flash_attention) {
        return fmt::format("a cache of type {} needs flash attention, which is disabled",
                           plan.cache.name);
    }
    for (const std::uint64_t length : {model.key_length, model.value_length}) {
        if (length % plan.cache.elements == 0) continue;
        return fmt::format(
            "a cache of type {} has {} elements in a block, and heads of this "
            "model have {}, which is not a multiple",
            plan.cache.name, plan.cache.elements, length);
    }
    return "";
}

}  // namespace tensorpool::command::model
