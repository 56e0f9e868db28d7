#include "model/estimate/gguf_figures.hpp"

#include <gtest/gtest.h>

#include "common/settings.hpp"
#include "support/model_writers.hpp"

namespace tensorpool::command::model {
namespace {

using tensorpool::testing::GgufWriter;
using tensorpool::testing::WrittenFile;
namespace ggml = tensorpool::testing::ggml;
using Values = std::vector<std::int64_t>;

/// A file in memory, read.
struct Read {
    explicit Read(const GgufWriter& writer)
        : written(writer.write()), file(ModelFile::read(written.view(), "made.gguf")) {}
    WrittenFile written;
    ModelFile file;
    GgufFigures figures{file};
};

TEST(GgufFigures, AreFoundUnderTheNameOfTheArchitecture) {
    GgufWriter writer;
    writer.add("general.architecture", "qwen3")
        .add("qwen3.block_count", std::uint32_t{28})
        .add("qwen3.attention.key_length", std::int64_t{128})
        .add("llama.attention.head_count", std::uint32_t{32});
    const Read read(writer);
    EXPECT_EQ(read.figures.architecture(), "qwen3");
    EXPECT_EQ(read.figures.find(Figure::layers), Values{28});
    EXPECT_EQ(read.figures.find(Figure::key_length), Values{128});
    EXPECT_EQ(read.figures.find(Figure::heads), std::nullopt);
    EXPECT_EQ(read.figures.name_of(Figure::heads), "qwen3.attention.head_count");
    EXPECT_EQ(read.figures.file(), "made.gguf");
}

TEST(GgufFigures, MayBeArraysOfNumbersOrTruths) {
    GgufWriter writer;
    writer.add("general.architecture", "gemma3")
        .add("gemma3.attention.head_count_kv", std::vector<std::uint32_t>{8, 4})
        .add("gemma3.feed_forward_length", std::vector<std::int32_t>{-1, 7})
        .add("gemma3.attention.sliding_window_pattern", std::vector<bool>{true, false});
    const Read read(writer);
    EXPECT_EQ(read.figures.find(Figure::key_value_heads), (Values{8, 4}));
    EXPECT_EQ(read.figures.find(Figure::feed_forward), (Values{-1, 7}));
    EXPECT_EQ(read.figures.find(Figure::window_period), (Values{1, 0}));
}

TEST(GgufFigures, OfAnotherKindAreRefused) {
    GgufWriter writer;
    writer.add("general.architecture", "llama")
        .add("llama.block_count", "32")
        .add("llama.embedding_length", 4096.0F)
        .add("llama.context_length", std::vector<std::string>{"1"});
    const Read read(writer);
    for (const Figure figure : {Figure::layers, Figure::embedding, Figure::context}) {
        EXPECT_THROW(read.figures.find(figure), CommandError);
    }
    try {
        read.figures.find(Figure::layers);
    } catch (const CommandError& error) {
        EXPECT_STREQ(error.what(),
                     "made.gguf: llama.block_count is no whole number; expected one, or an array "
                     "with one for each layer");
        EXPECT_EQ(error.code(), unusable);
    }
}

TEST(GgufFigures, CountTheVocabularyByTheEmbeddingsElseByWhatIsTold) {
    GgufWriter writer;
    writer.add("general.architecture", "llama")
        .add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
    EXPECT_EQ(Read(writer).figures.find(Figure::vocabulary), Values{3});
    writer.add("llama.vocab_size", std::uint32_t{7});
    EXPECT_EQ(Read(writer).figures.find(Figure::vocabulary), Values{7});
    writer.add_tensor("token_embd.weight", ggml::f32, {4, 9});
    EXPECT_EQ(Read(writer).figures.find(Figure::vocabulary), Values{9});
    EXPECT_EQ(Read(GgufWriter()).figures.find(Figure::vocabulary), std::nullopt);
}

TEST(GgufFigures, AreThereWithoutAnArchitecture) {
    EXPECT_EQ(Read(GgufWriter()).figures.architecture(), "");
    EXPECT_EQ(
        Read(GgufWriter().add("general.architecture", std::uint32_t{1})).figures.architecture(),
        "");
}

}  // namespace
}  // namespace tensorpool::command::model
