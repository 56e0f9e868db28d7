#include <tensorpool/model_hyperparameters.hpp>

#include <gtest/gtest.h>

namespace tensorpool {
namespace {

TensorLocation layer(std::uint32_t number, std::string_view stem) {
    return {ModelPart::layer, number, stem};
}

TEST(LocationOfATensor, IsALayerByTheNumberInTheName) {
    EXPECT_EQ(location_of("blk.12.attn_q.weight"), layer(12, "blk."));
    EXPECT_EQ(location_of("model.layers.3.mlp.up_proj.weight"), layer(3, "model.layers."));
    EXPECT_EQ(location_of("h.0.ln_1.bias"), layer(0, "h."));
    EXPECT_EQ(location_of("transformer.h.11.attn.c_attn.weight"), layer(11, "transformer.h."));
    EXPECT_EQ(location_of("vision.layers.2.layers.5.w"), layer(2, "vision.layers."));
    EXPECT_EQ(location_of("blk.7"), layer(7, "blk."));
}

TEST(LocationOfATensor, IsFoundForEmbeddingsAndTheOutput) {
    for (const char* const name : {"token_embd.weight", "position_embd.weight", "wte.weight",
                                   "model.embed_tokens.weight", "transformer.wpe.weight"}) {
        EXPECT_EQ(location_of(name).part, ModelPart::embeddings) << name;
    }
    for (const char* const name :
         {"output.weight", "output_norm.weight", "lm_head.weight", "model.norm.weight",
          "transformer.ln_f.bias", "embed_out.weight"}) {
        EXPECT_EQ(location_of(name).part, ModelPart::output) << name;
    }
}

TEST(LocationOfATensor, IsOtherForAllOtherNames) {
    for (const char* const name : {"rope_freqs.weight", "", ".", "blk", "blk.", "blk.x.weight",
                                   "blk.-1.weight", "blk.99999999999.weight", "arr_0.npy"}) {
        EXPECT_EQ(location_of(name), TensorLocation{}) << name;
    }
}

}  // namespace
}  // namespace tensorpool
