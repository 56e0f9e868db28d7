#include "models/estimate/hyperparameter_source.hpp"

#include <gtest/gtest.h>

#include "support/model_writers.hpp"

namespace tensorpool::files {
namespace {

using tensorpool::testing::GgufWriter;
using tensorpool::testing::WrittenFile;
namespace ggml = tensorpool::testing::ggml;
using Values = std::vector<std::int64_t>;

/// A file that is written to memory and read back.
struct Read {
    explicit Read(const GgufWriter& writer)
        : written(writer.write()), file(ModelFile::read(written.view(), "made.gguf")) {}
    WrittenFile written;
    ModelFile file;
    GgufHyperparameters parameters{file};
};

TEST(GgufHyperparameters, AreFoundUnderTheNameOfTheArchitecture) {
    GgufWriter writer;
    writer.add("general.architecture", "qwen3")
        .add("qwen3.block_count", std::uint32_t{28})
        .add("qwen3.attention.key_length", std::int64_t{128})
        .add("llama.attention.head_count", std::uint32_t{32});
    const Read read(writer);
    EXPECT_EQ(read.parameters.architecture(), "qwen3");
    EXPECT_EQ(read.parameters.find(Hyperparameter::layers), Values{28});
    EXPECT_EQ(read.parameters.find(Hyperparameter::key_length), Values{128});
    EXPECT_EQ(read.parameters.find(Hyperparameter::heads), std::nullopt);
    EXPECT_EQ(read.parameters.name_of(Hyperparameter::heads), "qwen3.attention.head_count");
    EXPECT_EQ(read.parameters.file(), "made.gguf");
}

TEST(GgufHyperparameters, MayBeArraysOfNumbersOrBooleans) {
    GgufWriter writer;
    writer.add("general.architecture", "gemma3")
        .add("gemma3.attention.head_count_kv", std::vector<std::uint32_t>{8, 4})
        .add("gemma3.feed_forward_length", std::vector<std::int32_t>{-1, 7})
        .add("gemma3.attention.sliding_window_pattern", std::vector<bool>{true, false});
    const Read read(writer);
    EXPECT_EQ(read.parameters.find(Hyperparameter::key_value_heads), (Values{8, 4}));
    EXPECT_EQ(read.parameters.find(Hyperparameter::feed_forward), (Values{-1, 7}));
    EXPECT_EQ(read.parameters.find(Hyperparameter::window_period), (Values{1, 0}));
}

TEST(GgufHyperparameters, RejectOtherTypes) {
    GgufWriter writer;
    writer.add("general.architecture", "llama")
        .add("llama.block_count", "32")
        .add("llama.embedding_length", 4096.0F)
        .add("llama.context_length", std::vector<std::string>{"1"});
    const Read read(writer);
    for (const Hyperparameter parameter :
         {Hyperparameter::layers, Hyperparameter::embedding, Hyperparameter::context}) {
        EXPECT_THROW(read.parameters.find(parameter), HyperparameterError);
    }
    try {
        read.parameters.find(Hyperparameter::layers);
    } catch (const HyperparameterError& error) {
        EXPECT_STREQ(error.what(),
                     "made.gguf: llama.block_count is not a whole number; expected one, or an "
                     "array with one for each layer");
    }
}

TEST(GgufHyperparameters, FindTheSizeOfTheVocabulary) {
    GgufWriter writer;
    writer.add("general.architecture", "llama")
        .add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
    EXPECT_EQ(Read(writer).parameters.find(Hyperparameter::vocabulary), Values{3});
    writer.add("llama.vocab_size", std::uint32_t{7});
    EXPECT_EQ(Read(writer).parameters.find(Hyperparameter::vocabulary), Values{7});
    writer.add_tensor("token_embd.weight", ggml::f32, {4, 9});
    EXPECT_EQ(Read(writer).parameters.find(Hyperparameter::vocabulary), Values{9});
    EXPECT_EQ(Read(GgufWriter()).parameters.find(Hyperparameter::vocabulary), std::nullopt);
}

TEST(GgufHyperparameters, MayHaveNoArchitecture) {
    EXPECT_EQ(Read(GgufWriter()).parameters.architecture(), "");
    EXPECT_EQ(
        Read(GgufWriter().add("general.architecture", std::uint32_t{1})).parameters.architecture(),
        "");
}

}  // namespace
}  // namespace tensorpool::files
