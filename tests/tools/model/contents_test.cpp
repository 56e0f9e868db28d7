#include "inspect/model/model_report.hpp"

#include <gtest/gtest.h>

#include "support/model_writers.hpp"

namespace tensorpool::command::model {
namespace {

using tensorpool::testing::GgufWriter;
using tensorpool::testing::WrittenFile;
namespace ggml = tensorpool::testing::ggml;

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

struct Summed {
    explicit Summed(const GgufWriter& writer, std::size_t top = 3)
        : written(writer.write()),
          file(ModelFile::read(written.view(), "made.gguf")),
          contents(sum_up(file, top)) {}
    WrittenFile written;
    ModelFile file;
    Contents contents;
};

TEST(Contents, AreSummarizedByType) {
    const Summed summed(small_model());
    const Contents& contents = summed.contents;
    EXPECT_EQ(contents.all.tensors, 11U);
    EXPECT_EQ(contents.all.parameters, 256U + 256 + 4 * 3072 + 16);
    // 1,024 elements take 32 blocks of 18 bytes; 2,048 take 64 blocks of 18 or 34 bytes.
    EXPECT_EQ(contents.all.bytes, 1024U + 512 + 4 * 576 + 3 * 1152 + 2176 + 64);
    ASSERT_EQ(contents.by_type.size(), 4U);
    EXPECT_EQ(contents.by_type[0].first, "Q4_0");
    EXPECT_EQ(contents.by_type[0].second, (Amount{7, 4 * 1024 + 3 * 2048, 4 * 576 + 3 * 1152}));
    EXPECT_EQ(contents.by_type[1].first, "Q8_0");
    EXPECT_EQ(contents.by_type[2].first, "F32");
    EXPECT_EQ(contents.by_type[3].first, "F16");
}

TEST(Contents, AreSummarizedByLayerInTheOrderOfUse) {
    const Summed summed(small_model());
    const auto& locations = summed.contents.by_location;
    const std::vector<std::pair<TensorLocation, Amount>> rows(locations.begin(), locations.end());
    ASSERT_EQ(rows.size(), 7U);
    EXPECT_EQ(rows[0].first.part, ModelPart::embeddings);
    EXPECT_EQ(rows[0].second, (Amount{1, 256, 512}));
    for (std::uint32_t layer = 0; layer < 4; ++layer) {
        EXPECT_EQ(rows[1 + layer].first, (TensorLocation{ModelPart::layer, layer, "blk."}));
        EXPECT_EQ(rows[1 + layer].second.tensors, 2U);
    }
    EXPECT_EQ(rows[5].first.part, ModelPart::output);
    EXPECT_EQ(rows[6].first.part, ModelPart::other);
}

TEST(Contents, ListTheLargestTensorsThenByName) {
    const Summed summed(small_model());
    const auto& largest = summed.contents.largest;
    ASSERT_EQ(largest.size(), 3U);
    EXPECT_EQ(largest[0]->name, "blk.3.ffn_up.weight");
    EXPECT_EQ(largest[1]->name, "blk.0.ffn_up.weight");
    EXPECT_EQ(largest[2]->name, "blk.1.ffn_up.weight");
    EXPECT_EQ(Summed(small_model(), 99).contents.largest.size(), 11U);
    EXPECT_EQ(Summed(small_model(), 0).contents.largest.size(), 0U);
}

TEST(LayerGroups, GroupLayersOfEqualSize) {
    const Summed summed(small_model());
    const std::vector<LayerGroup> groups = group_layers(summed.contents);
    ASSERT_EQ(groups.size(), 5U);
    EXPECT_EQ(groups[0].name, "embeddings");
    EXPECT_EQ(groups[0].layers, 0U);
    EXPECT_EQ(groups[1].name, "blk.0-2");
    EXPECT_EQ(groups[1].layers, 3U);
    EXPECT_EQ(groups[1].each.bytes, 576U + 1152);
    EXPECT_EQ(groups[1].all, (Amount{6, 3 * 3072, 3 * 1728}));
    EXPECT_EQ(groups[2].name, "blk.3");
    EXPECT_EQ(groups[4].name, "other");
}

TEST(LayerGroups, ShowSomeOfManyRanges) {
    GgufWriter writer;
    for (int layer = 0; layer < 40; ++layer) {
        writer.add_tensor("blk." + std::to_string(layer) + ".w", ggml::f32,
                          {layer % 2 == 0 ? 4U : 8U});
    }
    const std::vector<LayerGroup> groups = group_layers(Summed(writer).contents);
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[0].name, "blk.0, 2, 4, 6, 8, ...");
    EXPECT_EQ(groups[0].layers, 20U);
    EXPECT_EQ(groups[1].each.bytes, 32U);
}

}  // namespace
}  // namespace tensorpool::command::model
