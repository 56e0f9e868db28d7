#include <tensorpool/model_hyperparameters.hpp>

#include <cstddef>
#include <map>
#include <tuple>

#include <tensorpool/detail/saturating.hpp>
#include <tensorpool/model_file.hpp>

namespace tensorpool {
namespace {

using detail::sum;

// Layers with numbers that no model has count as other.
constexpr std::uint32_t max_layers = 4096;

/// Returns the stem of the layers with the most bytes.
std::string_view main_stem(const ModelFile& file) {
    std::map<std::string_view, std::uint64_t> stems;
    for (const ModelTensor& tensor : file.tensors()) {
        const TensorLocation location = location_of(tensor.name);
        if (location.part != ModelPart::layer) continue;
        std::uint64_t& bytes = stems[location.stem];
        bytes = sum(bytes, tensor.bytes);
    }
    std::string_view max;
    std::uint64_t bytes = 0;
    for (const auto& [stem, total] : stems) {
        if (total > bytes) std::tie(max, bytes) = std::tie(stem, total);
    }
    return max;
}

bool is_tied(const ModelFile& file) {
    for (const char* const name : {"output.weight", "lm_head.weight", "embed_out.weight"}) {
        if (file.find(name) != nullptr) return false;
    }
    return true;
}

std::uint64_t& bytes_at(ModelWeights& weights, const TensorLocation& location,
                        std::string_view stem) {
    if (location.part == ModelPart::layer && location.stem == stem && location.layer < max_layers) {
        if (weights.layers.size() <= location.layer) weights.layers.resize(location.layer + 1);
        return weights.layers[location.layer];
    }
    if (location.part == ModelPart::embeddings) return weights.embeddings;
    return location.part == ModelPart::output ? weights.output : weights.other;
}

}  // namespace

std::uint64_t ModelWeights::total() const noexcept {
    std::uint64_t bytes = sum(embeddings, output, other);
    for (const std::uint64_t layer : layers) bytes = sum(bytes, layer);
    return bytes;
}

ModelWeights weights_of(const ModelFile& file) {
    const std::string_view stem = main_stem(file);
    ModelWeights weights;
    weights.tied = is_tied(file);
    for (const ModelTensor& tensor : file.tensors()) {
        std::uint64_t& bytes = bytes_at(weights, location_of(tensor.name), stem);
        bytes = sum(bytes, tensor.bytes);
    }
    return weights;
}

}  // namespace tensorpool
