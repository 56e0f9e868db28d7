#pragma once

/// Reads hyperparameters from any source: the metadata of a GGUF file, or a config.json.

#include <algorithm>
#include <iterator>
#include <limits>

#include <tensorpool/model_file.hpp>
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

/// One number, or one for each layer; nullopt if the file does not have the hyperparameter.
using Values = std::optional<std::vector<std::int64_t>>;

class HyperparameterSource {
public:
    virtual ~HyperparameterSource() = default;
    virtual std::string name_of(Hyperparameter parameter) const = 0;
    /// Throws HyperparameterError if the file has it, but not as whole numbers.
    virtual Values find(Hyperparameter parameter) const = 0;
    /// Returns the architecture, as in general.architecture of a GGUF file; "" if the file has
    /// none.
    virtual const std::string& architecture() const noexcept = 0;
    virtual const std::string& file() const = 0;
};

/// Reads all hyperparameters of a model. Throws HyperparameterError, which names the value that
/// is missing or out of bounds, what was found and what is expected.
ModelHyperparameters read_hyperparameters(const HyperparameterSource& source, const Family& family);

/// Reads the config.json of a model. Throws HyperparameterError if the file cannot be read or is
/// not a JSON object, and in a build without nlohmann-json.
std::unique_ptr<HyperparameterSource> read_config_file(const std::string& path);

inline constexpr const char* gguf_keys[] = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "vocab_size",
    "expert_used_count",
    "expert_feed_forward_length",
    "expert_shared_feed_forward_length",
};

static_assert(std::size(gguf_keys) == hyperparameter_count);

// More values than the maximum number of layers.
inline constexpr std::size_t max_values = 1 << 16;

inline Values values_of(const MetadataValue& value) {
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::vector{*number};
    if (const auto* number = std::get_if<std::uint64_t>(&value))
        return std::vector{static_cast<std::int64_t>(std::min(*number, limit))};
    if (const auto* array = std::get_if<MetadataArray>(&value))
        return whole_numbers(*array, max_values);
    return std::nullopt;
}

/// Reads hyperparameters from the metadata of a GGUF file, by the keys of ggml/docs/gguf.md. The
/// file must outlive it.
class GgufHyperparameters final : public HyperparameterSource {
public:
    explicit GgufHyperparameters(const ModelFile& file) : file_(file) {
        const MetadataValue* const value = file.find_metadata("general.architecture");
        if (value == nullptr) return;
        if (const auto* name = std::get_if<std::string_view>(value)) architecture_ = *name;
    }
    const std::string& architecture() const noexcept override { return architecture_; }
    std::string name_of(Hyperparameter parameter) const override {
        return architecture_ + '.' + gguf_keys[static_cast<std::size_t>(parameter)];
    }
    Values find(Hyperparameter parameter) const override {
        if (parameter == Hyperparameter::vocabulary) return vocabulary();
        const MetadataValue* const value = file_.find_metadata(name_of(parameter));
        if (value == nullptr) return std::nullopt;
        Values values = values_of(*value);
        if (values) return values;
        throw HyperparameterError(
            file() + ": " + name_of(parameter) +
            " is not a whole number; expected one, or an array with one for each layer");
    }
    const std::string& file() const override { return file_.name(); }

private:
    /// Returns the size of the vocabulary: the rows of the embeddings, which have one for each
    /// token, else the metadata `vocab_size`, else the length of the list of tokens.
    Values vocabulary() const {
        const ModelTensor* const embeddings = file_.find("token_embd.weight");
        if (embeddings != nullptr && embeddings->shape.size() == 2)
            return std::vector{static_cast<std::int64_t>(embeddings->shape[0])};
        const MetadataValue* const reported = file_.find_metadata(architecture_ + ".vocab_size");
        if (reported != nullptr) return values_of(*reported);
        const MetadataValue* const tokens = file_.find_metadata("tokenizer.ggml.tokens");
        if (tokens == nullptr) return std::nullopt;
        const auto* const array = std::get_if<MetadataArray>(tokens);
        if (array == nullptr) return std::nullopt;
        return std::vector{static_cast<std::int64_t>(array->count)};
    }

    const ModelFile& file_;
    std::string architecture_;
};

}  // namespace tensorpool::files
