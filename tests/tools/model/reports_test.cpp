#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "inspect/model/model_report.hpp"
#include "support/model_writers.hpp"

namespace tensorpool::command::model {
namespace {

using nlohmann::json;
using tensorpool::testing::GgufWriter;
using tensorpool::testing::WrittenFile;
namespace ggml = tensorpool::testing::ggml;

GgufWriter small_model() {
    GgufWriter writer;
    writer.add("general.architecture", "llama")
        .add("general.name", "Small")
        .add("llama.rope.freq_base", 500000.0F)
        .add("tokenizer.ggml.tokens", std::vector<std::string>(1200, "token"))
        .add("llama.attention.head_count_kv", std::vector<std::uint32_t>{8, 4})
        .add("tokenizer.ggml.add_bos_token", true);
    writer.add_tensor("token_embd.weight", ggml::f16, {32, 1200});
    writer.add_tensor("blk.0.attn_q.weight", ggml::q4_0, {32, 32});
    writer.add_tensor("blk.1.attn_q.weight", ggml::q4_0, {32, 32});
    return writer;
}

struct Reports {
    explicit Reports(const WrittenFile& file, std::size_t top = 10) : written(file) {
        const ModelFile model = ModelFile::read(written.view(), "made.gguf");
        const Contents contents = sum_up(model, top);
        const Report report{model, contents, top, std::nullopt};
        text = text_report(report, Sizes::iec);
        bytes = text_report(report, Sizes::bytes);
        parsed = json::parse(json_report(report));
    }
    WrittenFile written;
    std::string text;
    std::string bytes;
    json parsed;
};

bool says(const std::string& text, const char* pattern) {
    return std::regex_search(text, std::regex(pattern));
}

TEST(ModelText, DescribesTheFile) {
    const Reports reports(small_model().write());
    EXPECT_TRUE(
        reports.text.starts_with("made.gguf\n\n"
                                 "format                    GGUF  version 3\n"))
        << reports.text;
    EXPECT_TRUE(says(reports.text, "\ntensors +3  76.1 KiB\n")) << reports.text;
    EXPECT_TRUE(says(reports.text, "\nparameters +40.4k  15.42 bits each\n")) << reports.text;
    EXPECT_TRUE(says(reports.text, "\narchitecture +llama  Small\n")) << reports.text;
}

TEST(ModelText, HasTablesByTypeAndLayerAndOfTheLargest) {
    const Reports reports(small_model().write());
    EXPECT_TRUE(says(reports.text, "\nF16 +1 +38.4k +75.0 KiB 98.5%\n")) << reports.text;
    EXPECT_TRUE(says(reports.text, "\nQ4_0 +2 +2048 +1.12 KiB  1.5%\n")) << reports.text;
    EXPECT_TRUE(says(reports.text, "\nembeddings +1 +75.0 KiB 98.5%\n")) << reports.text;
    EXPECT_TRUE(says(reports.text, "\nblk.0-1 +2 +2 +576 B +1.12 KiB  1.5%\n")) << reports.text;
    EXPECT_TRUE(says(reports.text, "\ntoken_embd.weight +F16 +1200 x 32 +75.0 KiB 98.5%\n"))
        << reports.text;
    EXPECT_TRUE(says(reports.bytes, "\nblk.0-1 +2 +2 +576 +1152 +1.5%\n")) << reports.bytes;
}

TEST(ModelText, ShowsMetadata) {
    const Reports reports(small_model().write());
    EXPECT_TRUE(says(reports.text, "\ntokenizer.ggml.tokens +array of 1,200 strings\n"));
    EXPECT_TRUE(says(reports.text, "\nllama.attention.head_count_kv +\\[8, 4\\]\n"));
    EXPECT_TRUE(says(reports.text, "\nllama.rope.freq_base +500000\n"));
    EXPECT_TRUE(says(reports.text, "\ntokenizer.ggml.add_bos_token +true\n"));
}

TEST(ModelText, HasNoSpacesAtTheEndsOfLines) {
    EXPECT_FALSE(says(Reports(small_model().write()).text, " \n"));
}

TEST(ModelText, LimitsKindsOfLayersAndMetadata) {
    GgufWriter writer;
    for (unsigned i = 0; i < 150; ++i) {
        writer.add("key" + std::to_string(i), i);
        writer.add_tensor("blk." + std::to_string(i) + ".w", ggml::f32, {i + 1});
    }
    const Reports reports(writer.write(), 4);
    EXPECT_NE(reports.text.find("and 146 more kinds of layer\n"), std::string::npos)
        << reports.text;
    EXPECT_NE(reports.text.find("and 50 more, which --json prints\n"), std::string::npos);
    EXPECT_EQ(reports.parsed["metadata"].size(), 150U);
    EXPECT_EQ(reports.parsed["by_layer"].size(), 150U);
    EXPECT_EQ(reports.parsed["largest"].size(), 4U);
}

TEST(ModelText, OfAnEmptyFileIsShort) {
    const Reports reports(GgufWriter().write());
    EXPECT_TRUE(says(reports.text, "\nparameters +0  0.00 bits each\n")) << reports.text;
    EXPECT_EQ(reports.text.find("Largest"), std::string::npos);
    EXPECT_EQ(reports.text.find("Metadata"), std::string::npos);
    EXPECT_EQ(reports.parsed["tensors"].size(), 0U);
}

TEST(ModelText, EscapesControlCharacters) {
    const std::string hostile = "\x1b[31m\"\\\r\xe2\x80\xae";
    GgufWriter writer;
    writer.add("general.architecture", hostile).add(hostile, hostile);
    writer.add_tensor("blk.0." + hostile, ggml::f32, {4});
    writer.add_tensor(hostile, ggml::f32, {4});
    const Reports reports(writer.write());
    EXPECT_EQ(reports.text.find('\x1b'), std::string::npos);
    EXPECT_EQ(reports.text.find('\r'), std::string::npos);
    EXPECT_EQ(reports.text.find("\xe2\x80\xae"), std::string::npos);
    EXPECT_EQ(reports.parsed["tensors"][1]["name"], hostile);
    EXPECT_EQ(reports.parsed["metadata"][hostile], hostile);
}

TEST(ModelJson, ContainsAllTensorsWithUnitsInTheNames) {
    const json parsed = Reports(small_model().write()).parsed;
    EXPECT_EQ(parsed["file"], "made.gguf");
    EXPECT_EQ(parsed["format"], "GGUF");
    EXPECT_EQ(parsed["version"], 3);
    EXPECT_EQ(parsed["tensor_count"], 3);
    EXPECT_EQ(parsed["tensor_bytes"], 76800 + 2 * 576);
    EXPECT_EQ(parsed["by_type"][0]["type"], "F16");
    EXPECT_EQ(parsed["by_layer"][1]["name"], "blk.0");
    EXPECT_EQ(parsed["by_layer"][1]["layer"], 0);
    EXPECT_EQ(parsed["by_layer"][0]["part"], "embeddings");
    EXPECT_EQ(parsed["largest"][0], "token_embd.weight");
    EXPECT_EQ(parsed["tensors"][0]["shape"], json({1200, 32}));
    EXPECT_EQ(parsed["tensors"][0]["bytes"], 76800);
    EXPECT_EQ(parsed["metadata"]["tokenizer.ggml.tokens"]["count"], 1200);
    EXPECT_EQ(parsed["metadata"]["tokenizer.ggml.tokens"]["array_of"], "string");
    EXPECT_EQ(parsed["metadata"]["llama.attention.head_count_kv"]["values"], json({8, 4}));
    EXPECT_FALSE(parsed.contains("estimate"));
}

}  // namespace
}  // namespace tensorpool::command::model
