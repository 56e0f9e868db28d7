#pragma once

/// @file
/// Reads hyperparameters from any source: the metadata of a GGUF file, or a config.json.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/model_hyperparameters.hpp>

#include "models/estimate/families.hpp"

namespace tensorpool::files {

enum class Hyperparameter : std::uint8_t {
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
inline constexpr std::size_t hyperparameter_count = 14;

class HyperparameterSource {
public:
    virtual ~HyperparameterSource() = default;
    /// Returns the name of the hyperparameter in this file.
    virtual std::string name_of(Hyperparameter parameter) const = 0;
    /// Returns one number, or one for each layer; nullopt if the file does not have it. Throws
    /// HyperparameterError if the file has it, but not as whole numbers.
    virtual std::optional<std::vector<std::int64_t>> find(Hyperparameter parameter) const = 0;
    /// Returns the architecture, as in general.architecture of a GGUF file; "" if the file has
    /// none.
    virtual const std::string& architecture() const noexcept = 0;
    /// Returns the name of the file, for messages.
    virtual const std::string& file() const = 0;
};

/// Reads all hyperparameters of a model. Throws HyperparameterError, which names the value that
/// is missing or out of bounds, what was found and what is expected.
ModelHyperparameters read_hyperparameters(const HyperparameterSource& source, const Family& family);

}  // namespace tensorpool::files
