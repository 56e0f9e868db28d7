#include "model/estimate/figure_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/printable.hpp"
#include "common/settings.hpp"
#include "model/whole_number.hpp"

namespace tensorpool::command::model {
namespace {

struct Bounds {
    std::uint64_t least;
    std::uint64_t most;
};

// Far above every model there is (llama.cpp takes 512 layers), far below what overflows.
constexpr Bounds layer_bounds{1, 4096};
constexpr Bounds head_bounds{1, 1 << 16};
constexpr Bounds length_bounds{1, 1 << 20};
constexpr Bounds width_bounds{1, 1 << 26};
constexpr Bounds position_bounds{0, std::uint64_t{1} << 32};

class Reader {
public:
    explicit Reader(const FigureSource& source) : source_(source) {}

    std::uint64_t required(Figure figure, Bounds bounds) const {
        return values_or_missing(figure, bounds).front();
    }

    /// The largest, where each layer has its own.
    std::uint64_t most(Figure figure, Bounds bounds) const {
        return std::ranges::max(values_or_missing(figure, bounds));
    }

    std::uint64_t optional(Figure figure, Bounds bounds, std::uint64_t otherwise) const {
        const auto found = source_.find(figure);
        return found ? checked(figure, bounds, *found).front() : otherwise;
    }

    std::vector<std::uint64_t> per_layer(Figure figure, Bounds bounds, std::size_t layers) const {
        std::vector<std::uint64_t> values = values_or_missing(figure, bounds);
        if (values.size() == 1) values.resize(layers, values.front());
        if (values.size() < layers) {
            fail(figure, fmt::format("has {} values", whole_number(values.size())),
                 fmt::format("one, or one for each of {} layers", whole_number(layers)));
        }
        return values;
    }

    [[noreturn]] void fail(Figure figure, const std::string& found,
                           const std::string& expected) const {
        throw CommandError(unusable,
                           fmt::format("{}: {} {}; expected {}", printable(source_.file()),
                                       source_.name_of(figure), found, expected));
    }

private:
    std::vector<std::uint64_t> values_or_missing(Figure figure, Bounds bounds) const {
        const auto found = source_.find(figure);
        if (!found) fail(figure, "is missing", range_text(bounds));
        return checked(figure, bounds, *found);
    }

    std::vector<std::uint64_t> checked(Figure figure, Bounds bounds,
                                       const std::vector<std::int64_t>& found) const {
        if (found.empty()) fail(figure, "has no value", range_text(bounds));
        std::vector<std::uint64_t> values;
        for (const std::int64_t value : found) {
            const auto number = static_cast<std::uint64_t>(value);
            if (value < 0 || number < bounds.least || number > bounds.most)
                fail(figure, "is " + whole_number(value), range_text(bounds));
            values.push_back(number);
        }
        return values;
    }

    static std::string range_text(Bounds bounds) {
        return fmt::format("a whole number from {} to {}", whole_number(bounds.least),
                           whole_number(bounds.most));
    }

    const FigureSource& source_;
};

/// From a number, or from one for each layer that is 1 where the layer has a window.
std::vector<bool> windowed_layers(const FigureSource& source, const Reader& reader,
                                  const Family& family, std::size_t layers) {
    std::vector<bool> windowed(layers);
    const auto told = source.find(Figure::window_period);
    if (told && told->size() > 1) {
        const auto flags = reader.per_layer(Figure::window_period, {0, 1}, layers);
        for (std::size_t i = 0; i < layers; ++i) windowed[i] = flags[i] != 0;
        return windowed;
    }
    const std::uint64_t period =
        reader.optional(Figure::window_period, layer_bounds, family.period);
    for (std::size_t i = 0; i < layers; ++i) windowed[i] = has_window(i, period);
    return windowed;
}

void read_heads(Hyperparameters& model, const Reader& reader, const FigureSource& source) {
    const std::size_t layers = model.layers.size();
    const auto heads = reader.per_layer(Figure::heads, head_bounds, layers);
    const auto key_value = source.find(Figure::key_value_heads)
                               ? reader.per_layer(Figure::key_value_heads, head_bounds, layers)
                               : heads;
    for (std::size_t i = 0; i < layers; ++i) {
        if (heads[i] % key_value[i] != 0) {
            reader.fail(Figure::key_value_heads,
                        fmt::format("is {} in layer {}", whole_number(key_value[i]), i),
                        fmt::format("a divisor of its {} heads ({})", whole_number(heads[i]),
                                    source.name_of(Figure::heads)));
        }
        model.layers[i].heads = heads[i];
        model.layers[i].key_value_heads = key_value[i];
    }
}

void read_windows(Hyperparameters& model, const Reader& reader, const FigureSource& source,
                  const Family& family) {
    const std::uint64_t window = reader.optional(Figure::window, position_bounds, family.window);
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

void read_feed_forward(Hyperparameters& model, const Reader& reader) {
    model.experts_used = reader.optional(Figure::experts_used, {0, 1 << 16}, 0);
    if (model.experts_used == 0) {
        model.feed_forward = reader.most(Figure::feed_forward, width_bounds);
        return;
    }
    std::uint64_t each = reader.optional(Figure::expert_feed_forward, {0, width_bounds.most}, 0);
    if (each == 0) each = reader.most(Figure::feed_forward, width_bounds);
    model.feed_forward = model.experts_used * each +
                         reader.optional(Figure::shared_feed_forward, {0, width_bounds.most}, 0);
}

}  // namespace

Hyperparameters read_hyperparameters(const FigureSource& source, const Family& family,
                                     std::string architecture) {
    const Reader reader(source);
    Hyperparameters model;
    model.architecture = std::move(architecture);
    model.layers.resize(reader.required(Figure::layers, layer_bounds));
    model.context = reader.optional(Figure::context, position_bounds, 0);
    model.embedding = reader.required(Figure::embedding, width_bounds);
    model.vocabulary = reader.required(Figure::vocabulary, {1, std::uint64_t{1} << 32});
    read_heads(model, reader, source);
    read_windows(model, reader, source, family);
    read_feed_forward(model, reader);
    const std::uint64_t head_length =
        std::max<std::uint64_t>(model.embedding / model.layers.front().heads, 1);
    model.key_length = reader.optional(Figure::key_length, length_bounds, head_length);
    model.value_length = reader.optional(Figure::value_length, length_bounds, model.key_length);
    return model;
}

}  // namespace tensorpool::command::model
