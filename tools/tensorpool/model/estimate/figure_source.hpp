#pragma once

/// @file
/// Hyperparameters from whatever file tells them: GGUF's metadata, or a config.json.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/estimate/hyperparameters.hpp"

namespace tensorpool::command::model {

enum class Figure : std::uint8_t {
    layers,
    context,
    embedding,
    feed_forward,
    heads,
    key_value_heads,
    key_length,
    value_length,
    window,
    window_period,
    vocabulary,
    experts_used,
    expert_feed_forward,
    shared_feed_forward,
};
inline constexpr std::size_t figure_count = 14;

class FigureSource {
public:
    virtual ~FigureSource() = default;
    /// How this file calls it.
    virtual std::string name_of(Figure figure) const = 0;
    /// One number, or one for each layer; nothing where the file does not tell it. Throws
    /// CommandError where it is told, but not as whole numbers.
    virtual std::optional<std::vector<std::int64_t>> find(Figure figure) const = 0;
    /// For messages.
    virtual const std::string& file() const = 0;
};

/// Throws CommandError (unusable), naming what is missing or out of bounds, what was found and what
/// is expected.
Hyperparameters read_hyperparameters(const FigureSource& source, const Family& family,
                                     std::string architecture);

}  // namespace tensorpool::command::model
