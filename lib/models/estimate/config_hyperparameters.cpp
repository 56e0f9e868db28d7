#include "models/estimate/hyperparameter_source.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace tensorpool::files {
namespace {

using nlohmann::json;

/// The usual name of a hyperparameter, and its name in GPT-2 or other models.
struct Names {
    const char* usual;
    const char* other;
};

constexpr Names names[] = {
    {"num_hidden_layers", "n_layer"},
    {"max_position_embeddings", "n_positions"},
    {"hidden_size", "n_embd"},
    {"intermediate_size", "n_inner"},
    {"num_attention_heads", "n_head"},
    {"num_key_value_heads", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"head_dim", "head_dim"},
    {"sliding_window", "sliding_window"},
    {"sliding_window_pattern", "_sliding_window_pattern"},
    {"vocab_size", "vocab_size"},
    {"num_experts_per_tok", "num_experts_per_tok"},
    {"moe_intermediate_size", "moe_intermediate_size"},
    {"shared_expert_intermediate_size", "shared_expert_intermediate_size"},
};

static_assert(std::size(names) == hyperparameter_count);

constexpr std::pair<const char*, const char*> architectures[] = {
    {"mistral", "llama"},      {"mixtral", "llama"},      {"phi", "phi2"},
    {"qwen2_moe", "qwen2moe"}, {"qwen3_moe", "qwen3moe"}, {"gemma3_text", "gemma3"},
};

struct Usual {
    Hyperparameter parameter;
    std::int64_t value;
};

// The defaults of Gemma3TextConfig in Transformers. The files of Gemma 3 4B, 12B and 27B omit
// values that equal these.
constexpr Usual usual_of_gemma3[] = {
    {Hyperparameter::context, 131072},    {Hyperparameter::heads, 8},
    {Hyperparameter::key_value_heads, 4}, {Hyperparameter::key_length, 256},
    {Hyperparameter::value_length, 256},  {Hyperparameter::window, 4096},
    {Hyperparameter::vocabulary, 262208}};

std::string architecture_of(const std::string& type) {
    for (const auto& [theirs, ours] : architectures) {
        if (type == theirs) return ours;
    }
    return type;
}

json read_config(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    // Values are copied recursively on the stack, so deeper levels are dropped.
    constexpr int max_depth = 64;
    const auto keep = [](int depth, json::parse_event_t, const json&) { return depth < max_depth; };
    json config = json::parse(file, keep, false);
    if (config.is_object()) return config;
    throw HyperparameterError(path +
                              ": is not a JSON object; expected the configuration of a model");
}

const char* name_in(const json& config, Hyperparameter parameter) {
    const Names& name = names[static_cast<std::size_t>(parameter)];
    return config.contains(name.usual) || !config.contains(name.other) ? name.usual : name.other;
}

/// Converts a list of "sliding_attention" and "full_attention" to 1 and 0 for each layer.
Values windowed_layers(const json& types) {
    std::vector<std::int64_t> values;
    for (const json& type : types) values.push_back(type == "sliding_attention" ? 1 : 0);
    return values;
}

/// Reads hyperparameters from the config.json beside a model of Hugging Face, by the names of
/// PretrainedConfig. Multimodal models have those of the text model in "text_config".
class ConfigHyperparameters final : public HyperparameterSource {
public:
    /// Throws HyperparameterError if the file cannot be read or is not a JSON object.
    explicit ConfigHyperparameters(std::string path)
        : path_(std::move(path)), config_(read_config(path_)) {
        const auto text = config_.find("text_config");
        const json own = text != config_.end() && text->is_object() ? *text : config_;
        const auto type = own.contains("model_type") ? own.find("model_type") : own.end();
        if (type != own.end() && type->is_string())
            architecture_ = architecture_of(type->get<std::string>());
        config_ = own;
    }
    /// Returns model_type, converted to the names of general.architecture: "phi" becomes "phi2",
    /// "mixtral" becomes "llama".
    const std::string& architecture() const noexcept override { return architecture_; }
    std::string name_of(Hyperparameter parameter) const override {
        return name_in(config_, parameter);
    }
    Values find(Hyperparameter parameter) const override {
        // Files of Qwen have a window even if this option disables it.
        if (parameter == Hyperparameter::window &&
            config_.value("use_sliding_window", json(true)) == false)
            return std::nullopt;
        const auto types = config_.find("layer_types");
        if (parameter == Hyperparameter::window_period && types != config_.end() &&
            types->is_array())
            return windows(*types);
        const auto found = config_.find(name_in(config_, parameter));
        if (found == config_.end() || found->is_null()) return usual(parameter);
        if (found->is_number_integer()) return std::vector{found->get<std::int64_t>()};
        throw HyperparameterError(path_ + ": " + name_of(parameter) + " is not a whole number");
    }
    const std::string& file() const override { return path_; }

private:
    /// Returns which layers have a window: one flag for each layer, or the period of the only
    /// layer, because a single value is a period. Only with a period of 1 the first layer has no
    /// window.
    Values windows(const json& types) const {
        Values flags = windowed_layers(types);
        if (flags->size() != 1) return flags;
        if (find(Hyperparameter::layers) == std::vector<std::int64_t>{1})
            return std::vector{1 + flags->front()};
        throw HyperparameterError(path_ + ": layer_types has 1 value; expected one for each layer");
    }
    /// Returns the default for a value that the file omits.
    Values usual(Hyperparameter parameter) const {
        if (architecture_ == "gemma3" && !config_.contains(name_in(config_, parameter))) {
            for (const auto& [known, value] : usual_of_gemma3) {
                if (known == parameter) return std::vector{value};
            }
        }
        // GPT-2's feed-forward is four times as wide as its embedding.
        const auto width = config_.find("n_embd");
        if (parameter != Hyperparameter::feed_forward || width == config_.end())
            return std::nullopt;
        if (!width->is_number_integer()) return std::nullopt;
        return std::vector{4 * std::min<std::int64_t>(width->get<std::int64_t>(), 1 << 30)};
    }

    std::string path_;
    json config_;
    std::string architecture_;
};

}  // namespace

std::unique_ptr<HyperparameterSource> read_config_file(const std::string& path) {
    return std::make_unique<ConfigHyperparameters>(path);
}

}  // namespace tensorpool::files
