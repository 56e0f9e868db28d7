#include <tensorpool/model_hyperparameters.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <tensorpool/model_file.hpp>

#include "support/model_writers.hpp"
#include "support/temporary_path.hpp"

namespace tensorpool {
namespace {

using testing::GgufWriter;
using testing::WrittenFile;
namespace ggml = testing::ggml;

GgufWriter llama() {
    GgufWriter writer;
    writer.add("general.architecture", "llama")
        .add("llama.block_count", std::uint32_t{2})
        .add("llama.embedding_length", std::uint32_t{64})
        .add("llama.feed_forward_length", std::uint32_t{128})
        .add("llama.attention.head_count", std::uint32_t{4})
        .add("llama.vocab_size", std::uint32_t{8});
    writer.add_tensor("blk.0.attn_q.weight", ggml::f32, {64, 64});
    return writer;
}

ModelDescription describe(const WrittenFile& written) {
    return describe_model(ModelFile::read(written.view(), "made.gguf"));
}

/// A folder with files of a model.
class DescribeModel : public ::testing::Test {
protected:
    DescribeModel() { std::filesystem::create_directory(folder_.path()); }
    std::string put(const std::string& name, const std::string& bytes) const {
        const std::filesystem::path path = folder_.path() / name;
        std::ofstream(path, std::ios::binary) << bytes;
        return path.string();
    }
    testing::TemporaryPath folder_;
};

TEST_F(DescribeModel, ReadsHyperparametersAndWeightsOfAGgufFile) {
    const ModelDescription model = describe(llama().write());
    ASSERT_TRUE(model.hyperparameters);
    EXPECT_EQ(model.hyperparameters->architecture, "llama");
    EXPECT_EQ(model.hyperparameters->layers.size(), 2U);
    EXPECT_EQ(model.weights.total(), 64U * 64 * 4);
    EXPECT_EQ(model.source, "");
    EXPECT_EQ(model.why_unknown, "");
}

TEST_F(DescribeModel, SaysWhyHyperparametersAreUnknown) {
    GgufWriter other;
    other.add("general.architecture", "mamba").add_tensor("w", ggml::f32, {2});
    const ModelDescription model = describe(other.write());
    EXPECT_FALSE(model.hyperparameters);
    EXPECT_EQ(model.why_unknown,
              "Its architecture is mamba; known are " + known_architectures() + ".");
    EXPECT_EQ(model.weights.other, 8U);
    EXPECT_TRUE(describe(GgufWriter().write()).why_unknown.starts_with("It names no architecture"));
}

TEST_F(DescribeModel, RefusesImpossibleHyperparameters) {
    GgufWriter writer = llama();
    writer.add("llama.attention.head_count_kv", std::uint32_t{3});
    EXPECT_THROW(describe(writer.write()), HyperparameterError);
}

TEST_F(DescribeModel, AddsTheWeightsOfAllParts) {
    GgufWriter second;
    second.add_tensor("blk.1.attn_q.weight", ggml::f32, {64, 64});
    second.add_tensor("output.weight", ggml::f32, {64});
    put("m-00001-of-00002.gguf", llama().write().bytes());
    const std::string part = put("m-00002-of-00002.gguf", second.write().bytes());
    const ModelDescription model = describe_model(ModelFile::open(part));
    ASSERT_TRUE(model.hyperparameters) << "they are in the first part";
    EXPECT_EQ(model.weights.layers, (std::vector<std::uint64_t>{16384, 16384}));
    EXPECT_EQ(model.weights.output, 256U);
    EXPECT_FALSE(model.weights.tied);
}

TEST_F(DescribeModel, MissingPartIsReported) {
    const std::string part = put("m-00001-of-00002.gguf", llama().write().bytes());
    EXPECT_THROW(describe_model(ModelFile::open(part)), std::system_error);
}

TEST_F(DescribeModel, ReadsTheConfigurationBesideSafetensors) {
    if (!TENSORPOOL_TESTS_JSON) GTEST_SKIP() << "this build reads no JSON";
    const std::string header = R"({"wte.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    bytes += header + std::string(8, '\0');
    const std::string path = put("model.safetensors", bytes);
    EXPECT_NE(describe_model(ModelFile::open(path)).why_unknown.find("no config.json beside it"),
              std::string::npos);
    const std::string config = put("config.json", R"({"model_type": "gpt2", "n_embd": 768,
        "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257})");
    const ModelDescription model = describe_model(ModelFile::open(path));
    ASSERT_TRUE(model.hyperparameters);
    EXPECT_EQ(model.hyperparameters->vocabulary, 50257U);
    EXPECT_EQ(model.source, config);
    EXPECT_EQ(model.weights.embeddings, 8U);
    put("config.json", "[]");
    EXPECT_THROW(describe_model(ModelFile::open(path)), HyperparameterError);
}

}  // namespace
}  // namespace tensorpool
