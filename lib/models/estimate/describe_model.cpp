#include <tensorpool/model_hyperparameters.hpp>

#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>

#include <tensorpool/detail/saturating.hpp>

#include "base/text.hpp"
#include "models/estimate/hyperparameter_source.hpp"

namespace tensorpool::files {
namespace {

struct Bounds {
    std::uint64_t min;
    std::uint64_t max;
};

// Far above every known model (llama.cpp supports 512 layers), and far below what would overflow.
constexpr Bounds layer_bounds{1, 4096};
constexpr Bounds head_bounds{1, 1 << 16};
constexpr Bounds length_bounds{1, 1 << 20};
constexpr Bounds width_bounds{1, 1 << 26};
constexpr Bounds position_bounds{0, std::uint64_t{1} << 32};

class Reader {
public:
    explicit Reader(const HyperparameterSource& source) : source_(source) {}

    std::uint64_t required(Hyperparameter parameter, Bounds bounds) const {
        return values_or_missing(parameter, bounds).front();
    }

    /// Returns the maximum over the layers.
    std::uint64_t max(Hyperparameter parameter, Bounds bounds) const {
        return std::ranges::max(values_or_missing(parameter, bounds));
    }

    std::uint64_t optional(Hyperparameter parameter, Bounds bounds, std::uint64_t otherwise) const {
        const auto found = source_.find(parameter);
        return found ? checked(parameter, bounds, *found).front() : otherwise;
    }

    std::vector<std::uint64_t> per_layer(Hyperparameter parameter, Bounds bounds,
                                         std::size_t layers) const {
        std::vector<std::uint64_t> values = values_or_missing(parameter, bounds);
        if (values.size() == 1) values.resize(layers, values.front());
        if (values.size() < layers) {
            fail(parameter, "has " + std::to_string(values.size()) + " values",
                 "one, or one for each of " + std::to_string(layers) + " layers");
        }
        return values;
    }

    [[noreturn]] void fail(Hyperparameter parameter, const std::string& found,
                           const std::string& expected) const {
        throw HyperparameterError(source_.file() + ": " + source_.name_of(parameter) + " " + found +
                                  "; expected " + expected);
    }

private:
    std::vector<std::uint64_t> values_or_missing(Hyperparameter parameter, Bounds bounds) const {
        const auto found = source_.find(parameter);
        if (!found) fail(parameter, "is missing", range_text(bounds));
        return checked(parameter, bounds, *found);
    }

    std::vector<std::uint64_t> checked(Hyperparameter parameter, Bounds bounds,
                                       const std::vector<std::int64_t>& found) const {
        if (found.empty()) fail(parameter, "has no value", range_text(bounds));
        std::vector<std::uint64_t> values;
        for (const std::int64_t value : found) {
            const auto number = static_cast<std::uint64_t>(value);
            if (value < 0 || number < bounds.min || number > bounds.max)
                fail(parameter, "is " + std::to_string(value), range_text(bounds));
            values.push_back(number);
        }
        return values;
    }

    static std::string range_text(Bounds bounds) {
        return "a whole number from " + std::to_string(bounds.min) + " to " +
               std::to_string(bounds.max);
    }

    const HyperparameterSource& source_;
};

/// Returns which layers have a window: from a period, or from one flag for each layer.
std::vector<bool> windowed_layers(const HyperparameterSource& source, const Reader& reader,
                                  const Family& family, std::size_t layers) {
    std::vector<bool> windowed(layers);
    const auto reported = source.find(Hyperparameter::window_period);
    if (reported && reported->size() > 1) {
        const auto flags = reader.per_layer(Hyperparameter::window_period, {0, 1}, layers);
        for (std::size_t i = 0; i < layers; ++i) windowed[i] = flags[i] != 0;
        return windowed;
    }
    const std::uint64_t period =
        reader.optional(Hyperparameter::window_period, layer_bounds, family.period);
    for (std::size_t i = 0; i < layers; ++i) windowed[i] = has_window(i, period);
    return windowed;
}

void read_heads(ModelHyperparameters& model, const Reader& reader,
                const HyperparameterSource& source) {
    const std::size_t layers = model.layers.size();
    const auto heads = reader.per_layer(Hyperparameter::heads, head_bounds, layers);
    const auto key_value =
        source.find(Hyperparameter::key_value_heads)
            ? reader.per_layer(Hyperparameter::key_value_heads, head_bounds, layers)
            : heads;
    for (std::size_t i = 0; i < layers; ++i) {
        if (heads[i] % key_value[i] != 0) {
            reader.fail(Hyperparameter::key_value_heads,
                        "is " + std::to_string(key_value[i]) + " in layer " + std::to_string(i),
                        "a divisor of its " + std::to_string(heads[i]) + " heads (" +
                            source.name_of(Hyperparameter::heads) + ")");
        }
        model.layers[i].heads = heads[i];
        model.layers[i].key_value_heads = key_value[i];
    }
}

void read_windows(ModelHyperparameters& model, const Reader& reader,
                  const HyperparameterSource& source, const Family& family) {
    const std::uint64_t window =
        reader.optional(Hyperparameter::window, position_bounds, family.window);
    if (window == 0) return;
    if (family.period == 0) {
        model.unused_window = window;
        return;
    }
    const std::vector<bool> windowed = windowed_layers(source, reader, family, model.layers.size());
    for (std::size_t i = 0; i < windowed.size(); ++i) {
        if (windowed[i]) model.layers[i].window = window;
    }
}

void read_feed_forward(ModelHyperparameters& model, const Reader& reader) {
    model.experts_used = reader.optional(Hyperparameter::experts_used, {0, 1 << 16}, 0);
    if (model.experts_used == 0) {
        model.feed_forward = reader.max(Hyperparameter::feed_forward, width_bounds);
        return;
    }
    std::uint64_t each =
        reader.optional(Hyperparameter::expert_feed_forward, {0, width_bounds.max}, 0);
    if (each == 0) each = reader.max(Hyperparameter::feed_forward, width_bounds);
    model.feed_forward =
        model.experts_used * each +
        reader.optional(Hyperparameter::shared_feed_forward, {0, width_bounds.max}, 0);
}

// Mistral's models have the architecture llama, except for later ones. Files of phi3, llama and
// qwen2 may have a window, but llama.cpp keeps their whole context (for phi3 since its pull request
// 13676).
constexpr Family families[] = {
    {"llama", 0, 0},     {"mistral", 0, 0}, {"mistral3", 0, 0}, {"qwen2", 0, 0},
    {"qwen2moe", 0, 0},  {"qwen3", 0, 0},   {"qwen3moe", 0, 0}, {"gemma", 0, 0},
    {"gemma2", 2, 4096}, {"gemma3", 6, 0},  {"phi2", 0, 0},     {"phi3", 0, 0},
    {"gpt2", 0, 0},
};

}  // namespace

ModelHyperparameters read_hyperparameters(const HyperparameterSource& source,
                                          const Family& family) {
    const Reader reader(source);
    ModelHyperparameters model;
    model.architecture = source.architecture();
    model.layers.resize(reader.required(Hyperparameter::layers, layer_bounds));
    model.context = reader.optional(Hyperparameter::context, position_bounds, 0);
    model.embedding = reader.required(Hyperparameter::embedding, width_bounds);
    model.vocabulary = reader.required(Hyperparameter::vocabulary, {1, std::uint64_t{1} << 32});
    read_heads(model, reader, source);
    read_windows(model, reader, source, family);
    read_feed_forward(model, reader);
    const std::uint64_t head_length =
        std::max<std::uint64_t>(model.embedding / model.layers.front().heads, 1);
    model.key_length = reader.optional(Hyperparameter::key_length, length_bounds, head_length);
    model.value_length =
        reader.optional(Hyperparameter::value_length, length_bounds, model.key_length);
    return model;
}

const Family* find_family(const std::string& architecture) {
    for (const Family& family : families) {
        if (architecture == family.architecture) return &family;
    }
    return nullptr;
}

}  // namespace tensorpool::files

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

std::string known_architectures() {
    std::string names;
    for (const files::Family& family : files::families) {
        names += names.empty() ? "" : ", ";
        names += family.architecture;
    }
    return names;
}

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
