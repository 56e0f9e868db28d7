#include "models/estimate/hyperparameter_source.hpp"

#include <algorithm>

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

namespace {

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

const Family* find_family(const std::string& architecture) {
    for (const Family& family : families) {
        if (architecture == family.architecture) return &family;
    }
    return nullptr;
}

static std::string list_families() {
    std::string names;
    for (const Family& family : families) {
        names += names.empty() ? "" : ", ";
        names += family.architecture;
    }
    return names;
}

}  // namespace tensorpool::files

std::string tensorpool::known_architectures() {
    return files::list_families();
}
