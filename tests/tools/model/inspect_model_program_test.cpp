/// @file
/// Tests `tensorpool inspect MODEL` as users run it.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/model_writers.hpp"
#include "support/run_program.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::model {
namespace {

using nlohmann::json;
using tensorpool::testing::GgufWriter;
using tensorpool::testing::ProgramResult;
using tensorpool::testing::Variables;
using tensorpool::testing::WrittenFile;
namespace ggml = tensorpool::testing::ggml;

/// The metadata of Llama 3 8B, with a single small tensor.
GgufWriter llama() {
    GgufWriter writer;
    writer.add("general.architecture", "llama")
        .add("llama.block_count", std::uint32_t{32})
        .add("llama.context_length", std::uint32_t{8192})
        .add("llama.embedding_length", std::uint32_t{4096})
        .add("llama.feed_forward_length", std::uint32_t{14336})
        .add("llama.attention.head_count", std::uint32_t{32})
        .add("llama.attention.head_count_kv", std::uint32_t{8})
        .add("llama.vocab_size", std::uint32_t{128256});
    writer.add_tensor("blk.0.attn_q.weight", ggml::q4_0, {32, 32});
    return writer;
}

class InspectModel : public ::testing::Test {
protected:
    ProgramResult run(std::vector<std::string> arguments, const Variables& variables = {}) const {
        arguments.insert(arguments.begin(), "inspect");
        return tensorpool::testing::run_program(TENSORPOOL_PROGRAM, std::move(arguments),
                                                variables);
    }
    /// Runs an estimate on a machine with an NVML, and with a CUDA driver that ends each program
    /// that loads it.
    ProgramResult estimate(const char* nvml, std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {put("a.gguf", llama().write()), "--estimate"});
        return run(std::move(arguments),
                   {{"LD_LIBRARY_PATH", TENSORPOOL_FAKE_NVML_FOLDER}, {"FAKE_NVML", nvml}});
    }
    std::string put(const char* name, const WrittenFile& file) const {
        return folder_.file(name, file.bytes());
    }

    photos::TemporaryFolder folder_;
};

TEST_F(InspectModel, PrintsTextOrJson) {
    const std::string path = put("a.gguf", llama().write());
    const ProgramResult text = run({path});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_TRUE(text.output.starts_with(path + "\n\nformat ")) << text.output;
    EXPECT_FALSE(text.output.ends_with("\n\n"));
    const ProgramResult parsed = run({path, "--json"});
    EXPECT_EQ(json::parse(parsed.output)["tensors"][0]["name"], "blk.0.attn_q.weight");
}

TEST_F(InspectModel, EstimateExitsWithZeroIfItFits) {
    const std::string path = put("a.gguf", llama().write());
    const ProgramResult result =
        run({path, "--estimate", "--json", "--context", "1024", "--kv-type", "q4_0"});
    EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
    const json estimate = json::parse(result.output)["estimate"];
    EXPECT_EQ(estimate["host"]["cache_bytes"], 36 << 20);
    EXPECT_EQ(estimate["fits"], true);
}

TEST_F(InspectModel, EstimateExitsWithOneAndSuggestsOptionsIfItDoesNotFit) {
    const std::string path = put("a.gguf", llama().write());
    const ProgramResult result = run({path, "--estimate", "--context", "4096", "--batch", "64",
                                      "--device-memory", "300MiB", "--flash-attention", "off"});
    EXPECT_EQ(result.exit_code, 1) << result.output << result.errors;
    EXPECT_NE(result.output.find("more than the device has available"), std::string::npos)
        << result.output;
    // The suggested options fit.
    const std::size_t at = result.output.find("\n--kv-type q4_0 --flash-attention on ");
    ASSERT_NE(at, std::string::npos) << result.output;
    const ProgramResult smaller =
        run({path, "--estimate", "--context", "4096", "--batch", "64", "--device-memory", "300MiB",
             "--kv-type", "q4_0", "--flash-attention", "on"});
    EXPECT_EQ(smaller.exit_code, 0) << smaller.output << smaller.errors;
}

TEST_F(InspectModel, EstimateCountsTheCardWithTheMostFreeMemoryWithoutADriver) {
    const ProgramResult result = estimate("cards", {"--context", "256"});
    EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
    EXPECT_NE(result.output.find("Free card has 15.0 GiB of 16.0 GiB free"), std::string::npos)
        << result.output;
    const ProgramResult parsed = estimate("cards", {"--layers-on-device", "10", "--json"});
    const json memory = json::parse(parsed.output)["estimate"]["memory"];
    EXPECT_EQ(memory["device"]["name"], "Free card");
    EXPECT_EQ(memory["device"]["available_bytes"], 15ULL << 30);
    EXPECT_EQ(memory["device"]["total_bytes"], 16ULL << 30);
}

TEST_F(InspectModel, EstimateSaysWhyNoCardIsCounted) {
    const ProgramResult none = estimate("none", {"--context", "256"});
    EXPECT_EQ(none.exit_code, 0) << none.output << none.errors;
    EXPECT_NE(none.output.find("The memory of cards is left out: NVML reports no card."),
              std::string::npos)
        << none.output;
    const ProgramResult parsed = estimate("no_driver", {"--context", "256", "--json"});
    const json memory = json::parse(parsed.output)["estimate"]["memory"];
    EXPECT_TRUE(memory["device"].is_null());
    EXPECT_EQ(memory["device_unknown"], "nvmlInit_v2: Driver Not Loaded");
    const ProgramResult refused = estimate("none", {"--layers-on-device", "10"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.errors.find("the memory of a card is unknown: NVML reports no card; give"),
              std::string::npos)
        << refused.errors;
}

TEST_F(InspectModel, EstimateNeedsNoNvml) {
    folder_.file("libnvidia-ml.so.1", "no library");
    const ProgramResult result =
        run({put("a.gguf", llama().write()), "--estimate", "--context", "256", "--json"},
            {{"LD_LIBRARY_PATH", folder_.path().string()}});
    EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
    const json memory = json::parse(result.output)["estimate"]["memory"];
    EXPECT_TRUE(memory["device"].is_null());
    const std::string why = memory["device_unknown"];
    EXPECT_TRUE(why.starts_with("NVML cannot be loaded: ")) << why;
    EXPECT_NE(why.find("libnvidia-ml.so.1"), std::string::npos) << why;
}

TEST_F(InspectModel, RejectsInvalidOptions) {
    const std::string path = put("a.gguf", llama().write());
    const auto refused = [&](std::vector<std::string> arguments, const char* why) {
        arguments.insert(arguments.begin(), path);
        const ProgramResult result = run(arguments);
        EXPECT_EQ(result.exit_code, 2) << result.errors;
        EXPECT_NE(result.errors.find(why), std::string::npos) << result.errors;
    };
    refused({"--context", "4096"}, "--estimate");
    refused({"--html", "report.html"}, "--html is for traces");
    refused({"--estimate", "--kv-type", "q3"}, "'q3' is not a type of a cache; expected one of");
    refused({"--estimate", "--context", "0"}, "--context");
    refused({"--estimate", "--device-memory", "8GB"}, "'8GB' is not a size");
    refused({"--estimate", "--kv-type", "q8_0", "--flash-attention", "off"},
            "needs flash attention");
}

TEST_F(InspectModel, ExitsWithFourForDamagedFiles) {
    WrittenFile file = llama().write();
    file.cut_to(60);
    const ProgramResult cut = run({put("cut.gguf", file)});
    EXPECT_EQ(cut.exit_code, 4);
    EXPECT_NE(cut.errors.find("cut.gguf"), std::string::npos) << cut.errors;
    const ProgramResult missing = run({"/nowhere/a.gguf", "--estimate"});
    EXPECT_EQ(missing.exit_code, 4);
    EXPECT_NE(missing.errors.find("/nowhere/a.gguf"), std::string::npos) << missing.errors;
    const ProgramResult text = run({folder_.file("text", "no model"), "--estimate"});
    EXPECT_EQ(text.exit_code, 4) << text.errors;
    const ProgramResult absurd = run(
        {put("b.gguf", GgufWriter().add("general.architecture", "llama").write()), "--estimate"});
    EXPECT_EQ(absurd.exit_code, 4);
    EXPECT_NE(absurd.errors.find("llama.block_count is missing; expected a whole number"),
              std::string::npos)
        << absurd.errors;
}

TEST_F(InspectModel, ReportsTheWeightsOfUnknownArchitectures) {
    const ProgramResult result = run(
        {put("a.gguf", GgufWriter().add("general.architecture", "mamba").write()), "--estimate"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("Its architecture is mamba; known are llama, "), std::string::npos)
        << result.output;
}

TEST_F(InspectModel, CountsTheWeightsOfAllPartsOfASplitModel) {
    put("m-00001-of-00002.gguf", llama().write());
    GgufWriter second;
    second.add_tensor("blk.1.attn_q.weight", ggml::q4_0, {32, 32});
    const std::string path = put("m-00002-of-00002.gguf", second.write());
    const ProgramResult result = run({path, "--estimate", "--json", "--context", "256"});
    EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
    const json estimate = json::parse(result.output)["estimate"];
    EXPECT_EQ(estimate["host"]["weights_bytes"], 2 * 576);
    EXPECT_EQ(estimate["hyperparameters"]["architecture"], "llama");
    std::filesystem::remove(folder_.path() / "m-00001-of-00002.gguf");
    const ProgramResult alone = run({path, "--estimate"});
    EXPECT_EQ(alone.exit_code, 4);
    EXPECT_NE(alone.errors.find("m-00001-of-00002.gguf"), std::string::npos) << alone.errors;
}

WrittenFile safetensors() {
    tensorpool::testing::SafetensorsWriter writer;
    writer.add("format", "pt");
    writer.add_tensor("model.embed_tokens.weight", "BF16", {4, 8}, std::string(64, '\0'));
    writer.add_tensor("model.layers.0.mlp.weight", "BF16", {8, 8}, std::string(128, '\0'));
    return writer.write();
}

TEST_F(InspectModel, ReadsSafetensorsWithTheirConfiguration) {
    const std::string path = put("model.safetensors", safetensors());
    const ProgramResult text = run({path});
    EXPECT_NE(text.output.find("\nmodel.layers.0 "), std::string::npos)
        << text.output << text.errors;
    const ProgramResult alone = run({path, "--estimate"});
    EXPECT_EQ(alone.exit_code, 0) << alone.errors;
    EXPECT_NE(alone.output.find("no\nconfig.json beside it"), std::string::npos) << alone.output;
    folder_.file("config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12,
        "n_layer": 12, "n_positions": 1024, "vocab_size": 50257})");
    const ProgramResult known = run({path, "--estimate", "--json"});
    EXPECT_EQ(known.exit_code, 0) << known.errors;
    const json estimate = json::parse(known.output)["estimate"];
    EXPECT_EQ(estimate["host"]["cache_bytes"], 36 << 20);
    EXPECT_EQ(estimate["host"]["weights_bytes"], 192);
    EXPECT_NE(run({path, "--estimate"}).output.find("config.json"), std::string::npos);
}

// A directory is ignored, and so is a pipe, which would block forever.
TEST_F(InspectModel, IgnoresAConfigurationThatIsNotAFile) {
    const std::string path = put("model.safetensors", safetensors());
    std::filesystem::create_directory(folder_.path() / "config.json");
    const ProgramResult result = run({path, "--estimate"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("no\nconfig.json beside it"), std::string::npos) << result.output;
}

TEST_F(InspectModel, ReadsNumPyArrays) {
    using tensorpool::testing::npy_file;
    using tensorpool::testing::npy_header;
    const WrittenFile array = npy_file(npy_header("<f4", "(2, 3)"), std::string(24, '\0'));
    tensorpool::testing::ZipWriter zip;
    zip.add("a.npy", array).add("b.npy", array);
    for (const auto& [path, format, tensors] : {std::tuple(put("a.npy", array), "npy", 1),
                                                std::tuple(put("a.npz", zip.write()), "npz", 2)}) {
        const ProgramResult result = run({path, "--json"});
        ASSERT_EQ(result.exit_code, 0) << result.errors;
        EXPECT_EQ(json::parse(result.output)["format"], format);
        EXPECT_EQ(json::parse(result.output)["parameters"], tensors * 6);
        const ProgramResult text = run({path, "--estimate"});
        EXPECT_EQ(text.exit_code, 0) << text.errors;
        EXPECT_NE(text.output.find("They fit and leave "), std::string::npos) << text.output;
    }
}

TEST_F(InspectModel, ReadsTracesAndLogsToo) {
    const ProgramResult result = run({folder_.file("a.csv",
                                                   "Thread,Time,Action,Pointer,Size,Stream\n"
                                                   "1,23:59:59.000001,allocate,0x10,100,0\n")});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("lower bound"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace tensorpool::command::model
