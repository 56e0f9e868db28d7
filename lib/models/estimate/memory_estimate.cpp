#include <tensorpool/model_estimate.hpp>

#include <algorithm>
#include <cstdlib>

#include <tensorpool/detail/saturating.hpp>

namespace tensorpool {

using detail::max_number;
using detail::product;
using detail::round_up;
using detail::sum;

namespace {

constexpr std::uint64_t float_bytes = 4;
// llama.cpp pads the context and the cache of a window to a multiple of this number.
constexpr std::uint64_t cell_multiple = 256;

/// Returns the batch, limited to the tokens of all sequences.
std::uint64_t batch_of(const InferencePlan& plan) {
    return std::min(plan.batch, product(plan.context, plan.sequences));
}

std::uint64_t max_heads(const ModelHyperparameters& model) {
    std::uint64_t max = 0;
    for (const AttentionLayer& layer : model.layers) max = std::max(max, layer.heads);
    return max;
}

std::uint64_t floats(std::uint64_t one, std::uint64_t other) {
    return product(one, other, float_bytes);
}

std::uint64_t mask_bytes(const InferencePlan& plan) {
    return floats(batch_of(plan), cache_cells(0, plan));
}

/// Returns the bytes that the host prepares for a batch and reads from it.
std::uint64_t exchange_bytes(const ModelHyperparameters& model, const InferencePlan& plan) {
    return sum(floats(batch_of(plan), model.embedding), mask_bytes(plan),
               floats(plan.sequences, model.vocabulary));
}

/// Layers from `first` on are on the device. If any layer is, the output is too.
struct Split {
    std::size_t first = 0;
    bool output_on_device = false;
};

Split split_of(const ModelHyperparameters& model, const InferencePlan& plan) {
    const std::size_t layers = model.layers.size();
    const std::uint64_t on_device = std::min<std::uint64_t>(plan.layers_on_device, layers + 1);
    if (on_device == 0) return {layers, false};
    return {layers - static_cast<std::size_t>(on_device - 1), true};
}

void add_layers(MemoryEstimate& result, const ModelHyperparameters& model,
                const ModelWeights& weights, const InferencePlan& plan, std::size_t first) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        MemoryNeed& side = i < first ? result.host : result.device;
        if (i < weights.layers.size()) side.weights = sum(side.weights, weights.layers[i]);
        side.cache = sum(side.cache, layer_cache_bytes(model, model.layers[i], plan));
    }
    for (std::size_t i = model.layers.size(); i < weights.layers.size(); ++i) {
        result.host.weights = sum(result.host.weights, weights.layers[i]);
    }
}

void add_output(MemoryNeed& side, const ModelWeights& weights, bool on_device) {
    side.weights = sum(side.weights, weights.output);
    if (weights.tied && on_device) side.weights = sum(side.weights, weights.embeddings);
}

void add_compute(MemoryEstimate& result, const ModelHyperparameters& model,
                 const InferencePlan& plan, Split split) {
    const std::uint64_t layers =
        std::max(attention_bytes(model, plan), feed_forward_bytes(model, plan));
    const std::uint64_t output = output_bytes(model, plan);
    if (split.first > 0) result.host.compute = layers;
    if (split.first < model.layers.size()) result.device.compute = layers;
    MemoryNeed& last = split.output_on_device ? result.device : result.host;
    last.compute = std::max(last.compute, output);
    const std::uint64_t logits = floats(plan.sequences, model.vocabulary);
    result.host.compute = std::max(sum(result.host.compute, logits), exchange_bytes(model, plan));
}

/// Returns why elements of a cache of this type have no size; "" if they have one.
std::string problem_of_type(const DataType& type) {
    if (type.block_elements() != 0) return "";
    return "the type of the key-value cache is " + to_string(type) +
           "; expected one whose size is known, as of kv_cache_types()";
}

constexpr DataType block_type(std::uint8_t number) noexcept {
    return {.code = DataCode::ggml_block, .ggml_type = number};
}

// Those of llama.cpp's --cache-type-k, with the numbers of ggml.
constexpr KvCacheType types[] = {
    {"f32", DataType::of<float>()},
    {"f16", {.code = DataCode::floating, .bits = 16}},
    {"bf16", {.code = DataCode::bfloat, .bits = 16}},
    {"q8_0", block_type(8)},
    {"q5_1", block_type(7)},
    {"q5_0", block_type(6)},
    {"q4_1", block_type(3)},
    {"q4_0", block_type(2)},
    {"iq4_nl", block_type(20)},
};

constexpr std::size_t digits = 5;
constexpr std::string_view between = "-of-";

bool is_number(std::string_view text) {
    return text.size() == digits && std::ranges::all_of(text, [](char character) {
               return character >= '0' && character <= '9';
           });
}

}  // namespace

std::uint64_t MemoryNeed::total() const noexcept {
    return sum(weights, cache, compute);
}

std::uint64_t cache_cells(std::uint64_t window, const InferencePlan& plan) {
    const std::uint64_t all = round_up(plan.context, cell_multiple);
    if (window == 0) return all;
    return round_up(std::min(all, sum(window, batch_of(plan))), cell_multiple);
}

std::uint64_t layer_cache_bytes(const ModelHyperparameters& model, const AttentionLayer& layer,
                                const InferencePlan& plan) {
    const std::string problem = problem_of_type(plan.cache.data);
    if (!problem.empty()) throw std::invalid_argument("tensorpool: layer_cache_bytes: " + problem);
    const std::uint64_t elements =
        product(sum(model.key_length, model.value_length), layer.key_value_heads,
                cache_cells(layer.window, plan), plan.sequences);
    if (elements == max_number) return max_number;
    const std::uint64_t block = plan.cache.data.block_elements();
    return product(round_up(elements, block) / block, plan.cache.data.block_bytes());
}

std::uint64_t attention_bytes(const ModelHyperparameters& model, const InferencePlan& plan) {
    const std::uint64_t heads = max_heads(model);
    const std::uint64_t vectors =
        sum(product(2, model.embedding), product(2, heads, model.key_length));
    const std::uint64_t mask = mask_bytes(plan);
    const std::uint64_t scores = plan.flash_attention ? mask / 2 : product(heads, mask);
    return sum(floats(batch_of(plan), vectors), mask, scores);
}

std::uint64_t feed_forward_bytes(const ModelHyperparameters& model, const InferencePlan& plan) {
    const std::uint64_t vectors = sum(product(2, model.embedding), product(2, model.feed_forward),
                                      product(model.experts_used, model.embedding));
    return sum(floats(batch_of(plan), vectors), mask_bytes(plan));
}

std::uint64_t output_bytes(const ModelHyperparameters& model, const InferencePlan& plan) {
    return floats(batch_of(plan), sum(model.embedding, model.vocabulary));
}

MemoryEstimate estimate_memory(const ModelHyperparameters& model, const ModelWeights& weights,
                               const InferencePlan& plan) {
    const Split split = split_of(model, plan);
    MemoryEstimate result;
    result.host.weights = sum(weights.embeddings, weights.other);
    add_layers(result, model, weights, plan, split.first);
    add_output(split.output_on_device ? result.device : result.host, weights,
               split.output_on_device);
    add_compute(result, model, plan, split);
    return result;
}

std::string problem_of_cache(const ModelHyperparameters& model, const InferencePlan& plan) {
    if (std::string problem = problem_of_type(plan.cache.data); !problem.empty()) return problem;
    if (!plan.cache.is_quantised()) return "";
    const std::string cache = "a cache of type " + std::string(plan.cache.name);
    if (!plan.flash_attention) return cache + " needs flash attention, which is disabled";
    const std::uint64_t block = plan.cache.data.block_elements();
    for (const std::uint64_t length : {model.key_length, model.value_length}) {
        if (length % block == 0) continue;
        return cache + " has " + std::to_string(block) +
               " elements in a block, and heads of this model have " + std::to_string(length) +
               ", which is not a multiple";
    }
    return "";
}

bool fits(const MemoryEstimate& estimate, const MemoryRoom& room) noexcept {
    return estimate.host.total() <= room.host && estimate.device.total() <= room.device;
}

std::span<const KvCacheType> kv_cache_types() noexcept {
    return types;
}

const KvCacheType* find_kv_cache_type(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(types, name, &KvCacheType::name);
    return found == std::end(types) ? nullptr : found;
}

std::vector<std::string> files_of_model(const std::string& path) {
    const std::size_t dot = path.rfind('.');
    // "-00001-of-00003" before the file name extension.
    constexpr std::size_t length = 1 + digits + between.size() + digits;
    if (dot == std::string::npos || dot < length) return {path};
    const std::size_t begin = dot - length;
    const std::string_view mark = std::string_view(path).substr(begin, length);
    const std::string_view count = mark.substr(length - digits);
    if (mark[0] != '-' || !is_number(mark.substr(1, digits)) ||
        mark.substr(1 + digits, between.size()) != between || !is_number(count)) {
        return {path};
    }
    std::vector<std::string> files;
    const unsigned long number = std::strtoul(std::string(count).c_str(), nullptr, 10);
    for (unsigned long part = 1; part <= number; ++part) {
        std::string text = std::to_string(part);
        text.insert(0, digits - std::min(digits, text.size()), '0');
        files.push_back(path.substr(0, begin) + '-' + text + std::string(mark.substr(1 + digits)) +
                        path.substr(dot));
    }
    return files.empty() ? std::vector{path} : files;
}

}  // namespace tensorpool
