#include <tensorpool/model_hyperparameters.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::GgufWriter;
using testing::WrittenFile;
namespace ggml = testing::ggml;

/// Embeddings of 8 rows, four layers (the last with a tensor of another type), and an output.
GgufWriter small_model() {
    GgufWriter writer;
    writer.add_tensor("output.weight", ggml::f32, {32, 8});
    writer.add_tensor("token_embd.weight", ggml::f16, {32, 8});
    for (int layer = 0; layer < 4; ++layer) {
        const std::string stem = "blk." + std::to_string(layer);
        writer.add_tensor(stem + ".attn_q.weight", ggml::q4_0, {32, 32});
        writer.add_tensor(stem + ".ffn_up.weight", layer == 3 ? ggml::q8_0 : ggml::q4_0, {32, 64});
    }
    writer.add_tensor("rope_freqs.weight", ggml::f32, {16});
    return writer;
}

/// A file that is written to memory and read back.
struct Read {
    explicit Read(const GgufWriter& writer)
        : written(writer.write()), file(ModelFile::read(written.view(), "made.gguf")) {}
    WrittenFile written;
    ModelFile file;
};

TEST(WeightsOfAModel, AreDividedByPart) {
    const Read read(small_model());
    const ModelWeights weights = weights_of(read.file);
    EXPECT_EQ(weights.embeddings, 512U);
    EXPECT_EQ(weights.output, 1024U);
    EXPECT_EQ(weights.other, 64U);
    EXPECT_EQ(weights.layers, (std::vector<std::uint64_t>{1728, 1728, 1728, 2752}));
    EXPECT_EQ(weights.total(), 512U + 1024 + 64 + 3 * 1728 + 2752);
    EXPECT_FALSE(weights.tied);
}

TEST(WeightsOfAModel, AreTiedWithoutAnOutputTensor) {
    GgufWriter writer;
    writer.add_tensor("token_embd.weight", ggml::f16, {32, 8});
    writer.add_tensor("output_norm.weight", ggml::f32, {32});
    const Read read(writer);
    EXPECT_TRUE(weights_of(read.file).tied);
}

TEST(WeightsOfAModel, CountLayersOfAnotherPartAsOther) {
    GgufWriter writer;
    writer.add_tensor("blk.0.w", ggml::f32, {100});
    writer.add_tensor("v.blk.0.w", ggml::f32, {10});
    writer.add_tensor("blk.4000000000.w", ggml::f32, {1});
    const Read read(writer);
    const ModelWeights weights = weights_of(read.file);
    EXPECT_EQ(weights.layers, std::vector<std::uint64_t>{400});
    EXPECT_EQ(weights.other, 44U);
}

}  // namespace
}  // namespace tensorpool
