#pragma once

/// @file
/// Where a tensor belongs, by its name.

#include <cstdint>
#include <string_view>

namespace tensorpool::command::model {

enum class Part : std::uint8_t { embeddings, layer, output, other };
const char* to_string(Part part) noexcept;

struct Place {
    Part part = Part::other;
    std::uint32_t layer = 0;
    /// Of a layer, what stands before its number, dot included: "blk.", "model.layers.".
    std::string_view stem;
    friend bool operator==(const Place&, const Place&) = default;
};

/// "blk.12.attn_q.weight", "model.layers.12.mlp.up_proj.weight" and "transformer.h.12.ln_1.bias"
/// are of layer 12; "token_embd.weight" and "model.embed_tokens.weight" are embeddings;
/// "output_norm.weight" and "lm_head.weight" belong to the output. `name` must outlive the result.
Place place_of(std::string_view name) noexcept;

}  // namespace tensorpool::command::model
