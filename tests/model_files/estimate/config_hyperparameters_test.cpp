#include "models/estimate/hyperparameter_source.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "support/temporary_path.hpp"

namespace tensorpool::files {
namespace {

/// A configuration in a temporary file, read back.
std::unique_ptr<HyperparameterSource> source_of(const std::string& config) {
    const testing::TemporaryPath path("config.json");
    std::ofstream(path.path(), std::ios::binary) << config;
    return read_config_file(path.text());
}

ModelHyperparameters read(const std::string& config) {
    const auto parameters = source_of(config);
    return read_hyperparameters(*parameters, *find_family(parameters->architecture()));
}

TEST(ConfigHyperparameters, OfMistralHaveTheArchitectureLlama) {
    const ModelHyperparameters model = read(R"({"model_type": "mistral", "hidden_size": 4096,
        "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "max_position_embeddings": 32768, "vocab_size": 32000,
        "sliding_window": 4096})");
    EXPECT_EQ(model.architecture, "llama");
    EXPECT_EQ(model.layers.size(), 32U);
    EXPECT_EQ(model.layers[0].key_value_heads, 8U);
    EXPECT_EQ(model.key_length, 128U);
    EXPECT_EQ(model.unused_window, 4096U);
}

TEST(ConfigHyperparameters, OfGpt2HaveTheirOwnNames) {
    const ModelHyperparameters model = read(R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12,
        "n_layer": 12, "n_positions": 1024, "vocab_size": 50257, "n_inner": null})");
    EXPECT_EQ(model.layers.size(), 12U);
    EXPECT_EQ(model.context, 1024U);
    EXPECT_EQ(model.feed_forward, 3072U);
    EXPECT_EQ(model.key_length, 64U);
}

TEST(ConfigHyperparameters, OfGemma3AreReadFromTextConfig) {
    const ModelHyperparameters model = read(R"({"model_type": "gemma3", "vision_config": {},
        "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "head_dim": 256,
        "intermediate_size": 10240, "num_attention_heads": 8, "num_hidden_layers": 6,
        "num_key_value_heads": 4, "vocab_size": 262208, "sliding_window": 1024,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention"]}})");
    EXPECT_EQ(model.architecture, "gemma3");
    EXPECT_EQ(model.key_length, 256U);
    EXPECT_EQ(model.layers[0].window, 1024U);
    EXPECT_EQ(model.layers[1].window, 0U);
    EXPECT_EQ(model.layers[5].window, 0U);
}

std::string with_types(int layers, const std::string& types) {
    return R"({"model_type": "gemma3", "hidden_size": 2560, "intermediate_size": 10240,
        "sliding_window": 1024, "num_hidden_layers": )" +
           std::to_string(layers) + ", \"layer_types\": " + types + "}";
}

TEST(ConfigHyperparameters, OfOneLayerHaveItsType) {
    EXPECT_EQ(read(with_types(1, R"(["full_attention"])")).layers[0].window, 0U);
    EXPECT_EQ(read(with_types(1, R"(["sliding_attention"])")).layers[0].window, 1024U);
    for (const char* const types : {R"(["full_attention"])", R"(["sliding_attention"])"}) {
        try {
            read(with_types(2, types));
            FAIL() << "one type for two layers was accepted";
        } catch (const HyperparameterError& error) {
            EXPECT_NE(std::string(error.what()).find("layer_types has 1 value; expected"),
                      std::string::npos);
        }
    }
}

// As in the files of Gemma 3 4B, and of 12B, which has its number of heads.
TEST(ConfigHyperparameters, OfGemma3HaveDefaults) {
    const ModelHyperparameters small = read(R"({"model_type": "gemma3", "text_config": {
        "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
        "num_hidden_layers": 34, "sliding_window": 1024}})");
    EXPECT_EQ(small.layers[0].heads, 8U);
    EXPECT_EQ(small.layers[0].key_value_heads, 4U);
    EXPECT_EQ(small.layers[0].window, 1024U);
    EXPECT_EQ(small.layers[5].window, 0U);
    EXPECT_EQ(small.key_length, 256U);
    EXPECT_EQ(small.value_length, 256U);
    EXPECT_EQ(small.vocabulary, 262208U);
    EXPECT_EQ(small.context, 131072U);
    const ModelHyperparameters larger = read(R"({"model_type": "gemma3", "text_config": {
        "hidden_size": 3840, "intermediate_size": 15360, "model_type": "gemma3_text",
        "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 48,
        "sliding_window": null}})");
    EXPECT_EQ(larger.layers[0].key_value_heads, 8U);
    EXPECT_EQ(larger.key_length, 256U);
    EXPECT_EQ(larger.layers[0].window, 0U);
}

TEST(ConfigHyperparameters, AreReadBesideDeeplyNestedValues) {
    const std::size_t levels = 1'000'000;
    const std::string deep = std::string(levels, '[') + std::string(levels, ']');
    EXPECT_EQ(read(R"({"text_config": {"model_type": "gpt2", "n_embd": 768, "n_head": 12,
        "n_layer": 12, "vocab_size": 50257, "use_sliding_window": )" +
                   deep + "}, \"a\": " + deep + "}")
                  .layers.size(),
              12U);
}

TEST(ConfigHyperparameters, OfQwenMayDisableTheWindow) {
    const std::string rest = R"("hidden_size": 896, "intermediate_size": 4864,
        "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
        "vocab_size": 151936, "sliding_window": 32768, "model_type": "qwen2"})";
    EXPECT_EQ(read("{\"use_sliding_window\": false, " + rest).unused_window, 0U);
    EXPECT_EQ(read("{\"use_sliding_window\": true, " + rest).unused_window, 32768U);
}

std::string complaint(const std::string& config) try {
    read(config);
    return "";
} catch (const HyperparameterError& error) {
    return error.what();
}

TEST(ConfigHyperparameters, ErrorsUseTheNamesOfTheFile) {
    EXPECT_NE(complaint("[1, 2]").find("config.json: is not a JSON object"), std::string::npos);
    EXPECT_NE(complaint("{\"model_type\"").find("is not a JSON object"), std::string::npos);
    EXPECT_NE(complaint(R"({"model_type": "llama"})").find("num_hidden_layers is missing"),
              std::string::npos);
    EXPECT_NE(complaint(R"({"model_type": "llama", "num_hidden_layers": "2"})")
                  .find("num_hidden_layers is not a whole number"),
              std::string::npos);
    EXPECT_NE(complaint(R"({"model_type": "gpt2", "n_layer": 0})").find("n_layer is 0"),
              std::string::npos);
}

TEST(ConfigHyperparameters, MayHaveNoArchitecture) {
    EXPECT_EQ(source_of("{}")->architecture(), "");
    EXPECT_EQ(source_of(R"({"model_type": 3})")->architecture(), "");
}

}  // namespace
}  // namespace tensorpool::files
