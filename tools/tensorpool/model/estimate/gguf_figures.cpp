#include "model/estimate/gguf_figures.hpp"

#include <fmt/format.h>

#include <limits>

#include "common/printable.hpp"
#include "common/settings.hpp"
#include "model/estimate/array_values.hpp"

namespace tensorpool::command::model {
namespace {

using Values = std::optional<std::vector<std::int64_t>>;

constexpr const char* keys[] = {
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
static_assert(std::size(keys) == figure_count);

// More values than layers that are taken.
constexpr std::size_t max_values = 1 << 16;

Values values_of(const MetadataValue& value) {
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::vector{*number};
    if (const auto* number = std::get_if<std::uint64_t>(&value))
        return std::vector{static_cast<std::int64_t>(std::min(*number, limit))};
    if (const auto* array = std::get_if<MetadataArray>(&value))
        return whole_numbers(*array, max_values);
    return std::nullopt;
}

}  // namespace

GgufFigures::GgufFigures(const ModelFile& file) : file_(file) {
    const MetadataValue* const value = file.find_metadata("general.architecture");
    if (value == nullptr) return;
    if (const auto* name = std::get_if<std::string_view>(value)) architecture_ = *name;
}

std::string GgufFigures::name_of(Figure figure) const {
    return fmt::format("{}.{}", printable(architecture_), keys[static_cast<std::size_t>(figure)]);
}

Values GgufFigures::find(Figure figure) const {
    if (figure == Figure::vocabulary) return vocabulary();
    const MetadataValue* const value = file_.find_metadata(
        fmt::format("{}.{}", architecture_, keys[static_cast<std::size_t>(figure)]));
    if (value == nullptr) return std::nullopt;
    Values values = values_of(*value);
    if (values) return values;
    throw CommandError(unusable, fmt::format("{}: {} is no whole number; expected one, or an array "
                                             "with one for each layer",
                                             printable(file()), name_of(figure)));
}

/// The embeddings have a row for each token; else what is told of it, or the list of the tokens.
Values GgufFigures::vocabulary() const {
    const ModelTensor* const embeddings = file_.find("token_embd.weight");
    if (embeddings != nullptr && embeddings->shape.size() == 2)
        return std::vector{static_cast<std::int64_t>(embeddings->shape[0])};
    const MetadataValue* const told = file_.find_metadata(architecture_ + ".vocab_size");
    if (told != nullptr) return values_of(*told);
    const MetadataValue* const tokens = file_.find_metadata("tokenizer.ggml.tokens");
    if (tokens == nullptr) return std::nullopt;
    const auto* const array = std::get_if<MetadataArray>(tokens);
    if (array == nullptr) return std::nullopt;
    return std::vector{static_cast<std::int64_t>(array->count)};
}

}  // namespace tensorpool::command::model
