#pragma once

/// @file
/// What a model's files say about its size: hyperparameters, and the bytes of its weights by part.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

class ModelFile;

/// The attention of one layer of a transformer.
struct AttentionLayer {
    /// The number of heads.
    std::uint64_t heads = 0;
    /// The number of heads for keys and values: fewer than `heads` with grouped-query attention.
    std::uint64_t key_value_heads = 0;
    /// The positions of its attention window; 0 means all.
    std::uint64_t window = 0;
};

/// The hyperparameters of a transformer that determine its memory besides the weights.
struct ModelHyperparameters {
    /// The name of the architecture, as in `general.architecture` of a GGUF file.
    std::string architecture;
    /// The context that the model was trained for; 0 if it is unknown.
    std::uint64_t context = 0;
    /// The length of an embedding.
    std::uint64_t embedding = 0;
    /// The number of tokens.
    std::uint64_t vocabulary = 0;
    /// The width of the feed-forward part: the sum over all experts that process a token.
    std::uint64_t feed_forward = 0;
    /// The number of experts that process a token; 0 without a mixture of experts.
    std::uint64_t experts_used = 0;
    /// The length of a key of one head.
    std::uint64_t key_length = 0;
    /// The length of a value of one head.
    std::uint64_t value_length = 0;
    /// The layers, the first one first.
    std::vector<AttentionLayer> layers;
    /// A window in the file that llama.cpp does not use, because it keeps the whole context. It is
    /// not in `layers`. 0 means none.
    std::uint64_t unused_window = 0;
};

/// The exception for hyperparameters that are missing, out of bounds or of the wrong type. Its text
/// names the file, the value, what was found and what was expected.
class TENSORPOOL_API HyperparameterError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The part of a model that a tensor belongs to.
enum class ModelPart : std::uint8_t {
    embeddings,  ///< the embeddings of tokens and positions
    layer,       ///< a layer
    output,      ///< the output and its normalization
    other,       ///< anything else
};
/// Returns the name of the part, such as "embeddings".
TENSORPOOL_API const char* to_string(ModelPart part) noexcept;

/// Where a tensor is in its model.
struct TensorLocation {
    /// The part.
    ModelPart part = ModelPart::other;
    /// For a layer, its number; otherwise 0.
    std::uint32_t layer = 0;
    /// For a layer, the prefix of its number with the dot: "blk.", "model.layers.".
    std::string_view stem;
    /// Returns whether two locations are equal.
    friend bool operator==(const TensorLocation&, const TensorLocation&) = default;
};
/// Returns the location of a tensor by its name, which must outlive the result.
///
/// "blk.12.attn_q.weight", "model.layers.12.mlp.up_proj.weight" and "transformer.h.12.ln_1.bias"
/// are in layer 12. "token_embd.weight" and "model.embed_tokens.weight" are embeddings.
/// "output_norm.weight" and "lm_head.weight" belong to the output.
TENSORPOOL_API TensorLocation location_of(std::string_view name) noexcept;

/// The bytes of a model's weights, by the part that uses them.
struct ModelWeights {
    /// The bytes of the embeddings.
    std::uint64_t embeddings = 0;
    /// The bytes of each layer, the first one first.
    std::vector<std::uint64_t> layers;
    /// The bytes of the output.
    std::uint64_t output = 0;
    /// The bytes of everything else.
    std::uint64_t other = 0;
    /// Whether the output uses the embeddings; on a device it needs a copy of them.
    bool tied = false;
    /// Returns the bytes of all parts; the largest number if their sum does not fit.
    TENSORPOOL_API std::uint64_t total() const noexcept;
};
/// Returns the weights of one file. Layers are those of the stem with the most bytes; other layers,
/// such as those of an image encoder, count as other. No byte of the weights is read.
TENSORPOOL_API ModelWeights weights_of(const ModelFile& file);

/// What the files of a model say about its size.
struct ModelDescription {
    /// The hyperparameters; std::nullopt if they are unknown.
    std::optional<ModelHyperparameters> hyperparameters;
    /// The reason why they are unknown, as a sentence; otherwise "".
    std::string why_unknown;
    /// The config.json that they were read from; "" if they are in the model file itself.
    std::string source;
    /// The weights of all files of the model.
    ModelWeights weights;
};
/// Reads the hyperparameters and the weights of a model, of which `file` is the file or one part.
///
/// Hyperparameters of a GGUF file are in its metadata, and those of a safetensors file in the
/// config.json beside it. The other parts of a split model are opened, unless `file` was made by
/// ModelFile::read. Throws HyperparameterError for hyperparameters that are missing or impossible,
/// and ModelFileError and std::system_error for a part that is damaged or cannot be opened.
TENSORPOOL_API ModelDescription describe_model(const ModelFile& file);
/// Returns the architectures whose hyperparameters are known: "llama, qwen2, …".
TENSORPOOL_API std::string known_architectures();
/// Returns the paths of all parts of a model, the first one first, by the numbers in a path:
/// "a-00002-of-00003.gguf" is the second of three. Any other path is the only one.
TENSORPOOL_API std::vector<std::string> files_of_model(const std::string& path);

}  // namespace tensorpool
