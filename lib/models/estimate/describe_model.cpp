#include <tensorpool/model_hyperparameters.hpp>

#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>

#include <tensorpool/detail/saturating.hpp>

#include "base/text.hpp"
#include "models/estimate/gguf_hyperparameters.hpp"

namespace tensorpool {
namespace {

using detail::sum;

void read_from(const files::HyperparameterSource& source, ModelDescription& to) {
    const std::string& name = source.architecture();
    const files::Family* const family = files::find_family(name);
    if (family != nullptr) {
        to.hyperparameters = files::read_hyperparameters(source, *family);
        return;
    }
    const std::string found =
        name.empty() ? "It names no architecture" : "Its architecture is " + name;
    to.why_unknown = found + "; known are " + known_architectures() + ".";
}

/// Returns the path of the configuration beside a model; "" if there is none.
std::string config_beside(const ModelFile& file) {
    if (file.mapping() == nullptr) return "";
    const std::filesystem::path folder = std::filesystem::path(file.name()).parent_path();
    const std::string config = (folder / "config.json").string();
    // Only a regular file: opening a pipe would wait for a writer.
    std::error_code none;
    return std::filesystem::is_regular_file(config, none) ? config : "";
}

void read_hyperparameters_of(const ModelFile& file, ModelDescription& to) {
    if (file.format() == ModelFormat::gguf) {
        return read_from(files::GgufHyperparameters(file), to);
    }
    const bool may_have_config = file.format() == ModelFormat::safetensors;
    const std::string config = may_have_config ? config_beside(file) : "";
    if (!config.empty()) {
        read_from(*files::read_config_file(config), to);
        if (to.hyperparameters) to.source = config;
        return;
    }
    to.why_unknown = std::string("A file of format ") + to_string(file.format()) +
                     " has no hyperparameters" +
                     (may_have_config ? ", and there is no config.json beside it." : ".");
}

void add(ModelWeights& all, const ModelWeights& part) {
    all.embeddings = sum(all.embeddings, part.embeddings);
    all.output = sum(all.output, part.output);
    all.other = sum(all.other, part.other);
    all.tied = all.tied && part.tied;
    if (all.layers.size() < part.layers.size()) all.layers.resize(part.layers.size());
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
        all.layers[i] = sum(all.layers[i], part.layers[i]);
    }
}

}  // namespace

ModelDescription describe_model(const ModelFile& file) {
    ModelDescription description;
    description.weights = weights_of(file);
    const std::vector<std::string> paths =
        file.mapping() != nullptr ? files_of_model(file.name()) : std::vector{file.name()};
    // The first part has the hyperparameters.
    if (paths.front() == file.name()) read_hyperparameters_of(file, description);
    for (const std::string& path : paths) {
        if (path == file.name()) continue;
        const ModelFile part = ModelFile::open(path);
        add(description.weights, weights_of(part));
        if (path == paths.front()) read_hyperparameters_of(part, description);
    }
    return description;
}

namespace {

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

namespace {

constexpr std::string_view layer_words[] = {"blk", "layers", "h", "layer", "blocks", "block"};
constexpr std::string_view embedding_words[] = {"wte", "wpe", "embed_in"};
constexpr std::string_view output_words[] = {
    "lm_head", "ln_f", "norm", "final_layernorm", "final_norm", "embed_out", "final_layer_norm"};

template <std::size_t Count>
bool is_one_of(std::string_view word, const std::string_view (&arguments)[Count]) noexcept {
    return std::find(std::begin(arguments), std::end(arguments), word) != std::end(arguments);
}

std::optional<std::uint32_t> number(std::string_view word) noexcept {
    std::uint32_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc() || rest != end) return std::nullopt;
    return value;
}

/// Returns the layer by the first word between dots that names layers and is followed by a number.
std::optional<TensorLocation> layer_of(std::string_view name) noexcept {
    std::size_t begin = 0;
    while (true) {
        const std::size_t dot = name.find('.', begin);
        if (dot == std::string_view::npos) return std::nullopt;
        if (is_one_of(name.substr(begin, dot - begin), layer_words)) {
            const std::size_t end = std::min(name.find('.', dot + 1), name.size());
            const auto layer = number(name.substr(dot + 1, end - dot - 1));
            if (layer) return TensorLocation{ModelPart::layer, *layer, name.substr(0, dot + 1)};
        }
        begin = dot + 1;
    }
}

/// Returns whether one of the words between dots is in the list.
template <std::size_t Count>
bool has_word(std::string_view name, const std::string_view (&words)[Count]) noexcept {
    for (;;) {
        const std::size_t dot = name.find('.');
        if (is_one_of(name.substr(0, dot), words)) return true;
        if (dot == std::string_view::npos) return false;
        name.remove_prefix(dot + 1);
    }
}

bool has_output_word(std::string_view name) noexcept {
    return name.starts_with("output") || has_word(name, output_words);
}

bool has_embedding_word(std::string_view name) noexcept {
    return name.find("embd") != std::string_view::npos ||
           name.find("embed") != std::string_view::npos || has_word(name, embedding_words);
}

}  // namespace

const char* to_string(ModelPart part) noexcept {
    return base::text_of({"embeddings", "layer", "output"}, part, "other");
}

TensorLocation location_of(std::string_view name) noexcept {
    if (const auto location = layer_of(name)) return *location;
    if (has_output_word(name)) return {ModelPart::output, 0, {}};
    if (has_embedding_word(name)) return {ModelPart::embeddings, 0, {}};
    return {};
}

}  // namespace tensorpool
