#include "model/estimate/config_figures.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::model {
namespace {

using nlohmann::json;
using Values = std::optional<std::vector<std::int64_t>>;

/// By its usual name, and by GPT-2's or Mixtral's.
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
static_assert(std::size(names) == figure_count);

constexpr std::pair<const char*, const char*> architectures[] = {
    {"mistral", "llama"},      {"mixtral", "llama"},      {"phi", "phi2"},
    {"qwen2_moe", "qwen2moe"}, {"qwen3_moe", "qwen3moe"}, {"gemma3_text", "gemma3"},
};

struct Usual {
    Figure figure;
    std::int64_t value;
};
// Transformers' Gemma3TextConfig: the files of Gemma 3 4B, 12B and 27B leave out what is as there.
constexpr Usual usual_of_gemma3[] = {{Figure::context, 131072},    {Figure::heads, 8},
                                     {Figure::key_value_heads, 4}, {Figure::key_length, 256},
                                     {Figure::value_length, 256},  {Figure::window, 4096},
                                     {Figure::vocabulary, 262208}};

std::string architecture_of(const std::string& type) {
    for (const auto& [theirs, ours] : architectures) {
        if (type == theirs) return ours;
    }
    return type;
}

json read_config(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    // Values are copied level by level, on the stack: deeper ones are left out.
    constexpr int max_depth = 64;
    const auto keep = [](int depth, json::parse_event_t, const json&) { return depth < max_depth; };
    json config = json::parse(file, keep, false);
    if (config.is_object()) return config;
    throw CommandError(unusable, fmt::format("{}: is no JSON object; expected the configuration of "
                                             "a model",
                                             printable(path)));
}

const char* name_in(const json& config, Figure figure) {
    const Names& name = names[static_cast<std::size_t>(figure)];
    return config.contains(name.usual) || !config.contains(name.other) ? name.usual : name.other;
}

/// "sliding_attention" and "full_attention", layer by layer.
Values windowed_layers(const json& types) {
    std::vector<std::int64_t> values;
    for (const json& type : types) values.push_back(type == "sliding_attention" ? 1 : 0);
    return values;
}

}  // namespace

ConfigFigures::ConfigFigures(std::string path)
    : path_(std::move(path)), config_(std::make_unique<json>(read_config(path_))) {
    const auto text = config_->find("text_config");
    const json own = text != config_->end() && text->is_object() ? *text : *config_;
    const auto type = own.contains("model_type") ? own.find("model_type") : own.end();
    if (type != own.end() && type->is_string())
        architecture_ = architecture_of(type->get<std::string>());
    *config_ = own;
}

ConfigFigures::~ConfigFigures() = default;

std::string ConfigFigures::name_of(Figure figure) const {
    return name_in(*config_, figure);
}

Values ConfigFigures::find(Figure figure) const {
    // A switch of Qwen's, whose files have a window all the same.
    if (figure == Figure::window && config_->value("use_sliding_window", json(true)) == false)
        return std::nullopt;
    const auto types = config_->find("layer_types");
    if (figure == Figure::window_period && types != config_->end() && types->is_array())
        return windowed_layers(*types);
    const auto found = config_->find(name_in(*config_, figure));
    if (found == config_->end() || found->is_null()) return usual(figure);
    if (found->is_number_integer()) return std::vector{found->get<std::int64_t>()};
    throw CommandError(unusable,
                       fmt::format("{}: {} is no whole number", printable(path_), name_of(figure)));
}

/// Where the file does not tell it.
Values ConfigFigures::usual(Figure figure) const {
    if (architecture_ == "gemma3" && !config_->contains(name_in(*config_, figure))) {
        for (const auto& [known, value] : usual_of_gemma3) {
            if (known == figure) return std::vector{value};
        }
    }
    // GPT-2's feed-forward is four times as wide as its embedding.
    const auto width = config_->find("n_embd");
    if (figure != Figure::feed_forward || width == config_->end()) return std::nullopt;
    if (!width->is_number_integer()) return std::nullopt;
    return std::vector{4 * std::min<std::int64_t>(width->get<std::int64_t>(), 1 << 30)};
}

}  // namespace tensorpool::command::model
