#pragma once

/// @file
/// Finds the part of a model that a tensor belongs to, by its name.

#include <cstdint>
#include <string_view>

namespace tensorpool::command::model {

enum class Part : std::uint8_t { embeddings, layer, output, other };
const char* to_string(Part part) noexcept;

struct Location {
    Part part = Part::other;
    std::uint32_t layer = 0;
    /// For a layer, the prefix of its number with the dot: "blk.", "model.layers.".
    std::string_view stem;
    friend bool operator==(const Location&, const Location&) = default;
};

/// Returns the location of a tensor. "blk.12.attn_q.weight", "model.layers.12.mlp.up_proj.weight"
/// and "transformer.h.12.ln_1.bias" are in layer 12. "token_embd.weight" and
/// "model.embed_tokens.weight" are embeddings. "output_norm.weight" and "lm_head.weight" belong to
/// the output. `name` must outlive the result.
Location location_of(std::string_view name) noexcept;

}  // namespace tensorpool::command::model
