#pragma once

/// Reads hyperparameters from any source: the metadata of a GGUF file, or a config.json.

#include <memory>

#include <tensorpool/model_hyperparameters.hpp>

namespace tensorpool::files {

/// A family of models, and which of its layers have a window, as in llama.cpp
/// (llama_hparams::set_swa_pattern and load_hparams of each architecture; src/llama-model.cpp,
/// since 2026 src/models/).
struct Family {
    const char* architecture;
    /// Every layer whose number is a multiple of this has no window; 0: no layer has a window.
    std::uint64_t period;
    std::uint64_t window;  ///< the default if the file has no window
};

/// Returns the family of an architecture, or nullptr if it is unknown.
const Family* find_family(const std::string& architecture);

/// Returns whether a layer, counted from 0, has the window. With a period of 6, the sixth, twelfth
/// and so on have none.
constexpr bool has_window(std::uint64_t layer, std::uint64_t period) noexcept {
    return period > 0 && layer % period < period - 1;
}

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

/// Reads the config.json of a model. Throws HyperparameterError if the file cannot be read or is
/// not a JSON object, and in a build without nlohmann-json.
std::unique_ptr<HyperparameterSource> read_config_file(const std::string& path);

}  // namespace tensorpool::files
