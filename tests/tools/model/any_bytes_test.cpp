/// @file
/// Files with changed bytes are rejected, or reported in text that is safe for a terminal and in
/// JSON that parses.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <tensorpool/model_hyperparameters.hpp>

#include "inspect/model/model_report.hpp"
#include "support/model_writers.hpp"

namespace tensorpool::command::model {
namespace {

using tensorpool::testing::GgufWriter;
namespace ggml = tensorpool::testing::ggml;

std::string small_model() {
    GgufWriter writer;
    writer.add("general.architecture", "gemma3")
        .add("gemma3.block_count", std::uint32_t{2})
        .add("gemma3.embedding_length", std::uint32_t{64})
        .add("gemma3.feed_forward_length", std::vector<std::int32_t>{64, 128})
        .add("gemma3.attention.head_count", std::uint32_t{4})
        .add("gemma3.attention.head_count_kv", std::vector<std::uint32_t>{4, 2})
        .add("gemma3.attention.sliding_window", std::uint64_t{512})
        .add("gemma3.attention.sliding_window_pattern", std::vector<bool>{true, false});
    writer.add_tensor("token_embd.weight", ggml::f16, {32, 8});
    writer.add_tensor("blk.0.attn_q.weight", ggml::q4_0, {32, 2});
    writer.add_tensor("blk.1.attn_q.weight", ggml::q4_0, {32, 2});
    return writer.write().bytes();
}

std::optional<Estimation> estimate_of(const ModelFile& file) try {
    ModelDescription model = describe_model(file);
    return make_estimation(std::move(model.hyperparameters), std::move(model.weights), {},
                           {1 << 20, 1 << 30, DeviceMemory{"a device", 1 << 20, 1 << 30}});
} catch (const HyperparameterError&) {
    return std::nullopt;
}

bool report(const std::string& bytes) try {
    const ModelFile file = ModelFile::read(std::as_bytes(std::span(bytes)), "any");
    const Contents contents = sum_up(file, 3);
    Report report{file, contents, 3, std::nullopt};
    const std::string plain = text_report(report, Sizes::iec);
    report.estimation = estimate_of(file);
    const std::string text = plain + text_report(report, Sizes::bytes);
    for (const char character : text) {
        EXPECT_TRUE(character == '\n' || static_cast<unsigned char>(character) >= 0x20);
    }
    EXPECT_TRUE(nlohmann::json::accept(json_report(report)));
    return true;
} catch (const ModelFileError&) {
    return false;
}

TEST(AnyModelBytes, ChangedModelsAreRejectedOrReported) {
    const std::string whole = small_model();
    ASSERT_TRUE(report(whole));
    int reported = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const unsigned value : {0x00U, 0x01U, 0x1bU, 0x7fU, 0x80U, 0xffU}) {
            std::string changed = whole;
            changed[at] = static_cast<char>(value);
            reported += report(changed) ? 1 : 0;
        }
    }
    EXPECT_GT(reported, 1000);
}

TEST(AnyModelBytes, TruncatedModelsAreRejectedOrReported) {
    const std::string whole = small_model();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) report(whole.substr(0, bytes));
}

}  // namespace
}  // namespace tensorpool::command::model
