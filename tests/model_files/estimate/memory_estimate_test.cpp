#include <tensorpool/model_estimate.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include <tensorpool/detail/saturating.hpp>

#include "support/known_models.hpp"

namespace tensorpool {
namespace {

using namespace testing;
using detail::max_number;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;

InferencePlan plan_of(std::uint64_t context, const char* cache = "f16") {
    InferencePlan plan;
    plan.context = context;
    plan.cache = *find_kv_cache_type(cache);
    return plan;
}

InferencePlan without_flash_attention(std::uint64_t context) {
    InferencePlan plan = plan_of(context);
    plan.flash_attention = false;
    return plan;
}

std::uint64_t cache_of(const ModelHyperparameters& model, const InferencePlan& plan) {
    return estimate_memory(model, {}, plan).host.cache;
}

TEST(CacheOfKeysAndValues, MatchesKnownSizesOfPublicModels) {
    // 2 x 32 layers x 8 heads x 128 x 4,096 x 2 bytes.
    EXPECT_EQ(cache_of(llama_3_8b(), plan_of(4096)), 512 * mib);
    // llama.cpp: "KV self size = 1024.00 MiB" for a context of 8192.
    EXPECT_EQ(cache_of(llama_3_8b(), plan_of(8192)), 1024 * mib);
    // Without grouped-query attention four times as much; Mistral 7B has the groups of Llama 3.
    EXPECT_EQ(cache_of(llama_2_7b(), plan_of(4096)), 2048 * mib);
    // llama.cpp: 448.00 MiB for Qwen3 0.6B, whose heads are longer than embedding / heads.
    EXPECT_EQ(cache_of(qwen_3_0_6b(), plan_of(4096)), 448 * mib);
    // 2 x 32 layers x 32 heads x 96 x 4,096 x 2 bytes.
    EXPECT_EQ(cache_of(phi_3_mini(), plan_of(4096)), 1536 * mib);
    // 2 x 12 layers x 12 heads x 64 x 1,024 x 2 bytes.
    EXPECT_EQ(cache_of(gpt_2(), plan_of(1024)), 36 * mib);
}

TEST(CacheOfKeysAndValues, CountsWindowsOfLayers) {
    // Gemma 2 9B: 21 layers with 8,192 positions, 21 with 4,096 + 512, of 2 x 8 x 256 x 2 bytes.
    EXPECT_EQ(cache_of(gemma_2_9b(), plan_of(8192)), 21 * (8192 + 4608) * 8 * kib);
    // Gemma 3 4B: of 34 layers the 6th, 12th, 18th, 24th and 30th have no window; the others keep
    // 1,024 + 512 positions, of 2 x 4 x 256 x 2 bytes.
    EXPECT_EQ(cache_of(gemma_3_4b(), plan_of(32768)), (5 * 32768 + 29 * 1536) * 4 * kib);
    // A context below the window needs no more than the context.
    EXPECT_EQ(cache_of(gemma_3_4b(), plan_of(512)), 34 * 512 * 4 * kib);
}

TEST(CacheOfKeysAndValues, CountsBlocksOfQuantisedTypes) {
    // 34 bytes for 32 elements, 18 for 32.
    EXPECT_EQ(cache_of(llama_3_8b(), plan_of(4096, "q8_0")), 272 * mib);
    EXPECT_EQ(cache_of(llama_3_8b(), plan_of(4096, "q4_0")), 144 * mib);
    EXPECT_EQ(cache_of(llama_3_8b(), plan_of(4096, "f32")), 1024 * mib);
}

TEST(CacheOfKeysAndValues, CountsSequencesAndRoundsTheContextTo256) {
    InferencePlan plan = plan_of(4096);
    plan.sequences = 3;
    EXPECT_EQ(cache_of(llama_3_8b(), plan), 3 * 512 * mib);
    EXPECT_EQ(cache_of(llama_3_8b(), plan_of(4000)), 512 * mib);
    EXPECT_EQ(cache_of(llama_3_8b(), plan_of(1)), 32 * mib);
}

TEST(CacheOfKeysAndValues, MayDifferFromLayerToLayer) {
    ModelHyperparameters model = llama_3_8b();
    model.layers.resize(2);
    model.layers[1].key_value_heads = 2;
    EXPECT_EQ(cache_of(model, plan_of(4096)), 16 * mib + 4 * mib);
}

TEST(Computing, MatchesLlamaCppForPublicModels) {
    // The logits of a batch, 128,256 x 512 x 4 bytes, and 8 MiB of embeddings.
    EXPECT_EQ(output_bytes(llama_3_8b(), plan_of(512)), 258 * mib + mib / 2);
    // "CUDA0 compute buffer size = 560.00 MiB".
    EXPECT_EQ(attention_bytes(llama_3_8b(), without_flash_attention(8192)), 560 * mib);
    // "CUDA0 compute buffer size = 296.00 MiB" for Llama 2 7B.
    EXPECT_EQ(attention_bytes(llama_2_7b(), without_flash_attention(4096)), 296 * mib);
    // "CPU compute buffer size = 300.75 MiB" for Qwen3 0.6B is 296.75 MiB of logits and 4 MiB where
    // embeddings are 2,048 wide; here they are 1,024.
    EXPECT_EQ(output_bytes(qwen_3_0_6b(), plan_of(4096)), 298 * mib + 768 * kib);
}

TEST(Computing, TakesTheLargestPhase) {
    const InferencePlan small = without_flash_attention(512);
    const InferencePlan large = without_flash_attention(8192);
    const std::uint64_t logits = 128256 * 4;  // of the last token, which the host reads
    EXPECT_EQ(estimate_memory(llama_3_8b(), {}, small).host.compute,
              output_bytes(llama_3_8b(), small) + logits);
    EXPECT_EQ(estimate_memory(llama_3_8b(), {}, large).host.compute,
              attention_bytes(llama_3_8b(), large) + logits);
}

TEST(Computing, LimitsTheBatchToAllSequences) {
    InferencePlan plan = plan_of(64);
    plan.batch = 512;
    InferencePlan small = plan_of(64);
    small.batch = 64;
    EXPECT_EQ(output_bytes(gpt_2(), plan), output_bytes(gpt_2(), small));
    plan.sequences = 2;
    EXPECT_EQ(output_bytes(gpt_2(), plan), 2 * output_bytes(gpt_2(), small));
}

TEST(Computing, CountsTheResultsOfExperts) {
    ModelHyperparameters model = gpt_2();
    const std::uint64_t without = feed_forward_bytes(model, plan_of(512));
    model.experts_used = 8;
    EXPECT_EQ(feed_forward_bytes(model, plan_of(512)) - without, 512 * 8 * 768 * 4U);
}

TEST(Layers, OnTheDeviceBeginWithTheOutputThenTheLastLayer) {
    const ModelWeights weights{100, std::vector<std::uint64_t>(12, 10), 7, 3, false};
    InferencePlan plan = plan_of(1024);
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).host.weights, weights.total());
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.total(), 0U);
    plan.layers_on_device = 1;
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.weights, 7U);
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.cache, 0U);
    plan.layers_on_device = 3;
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.weights, 27U);
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.cache, 2 * 3 * mib);
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).host.cache, 10 * 3 * mib);
    for (const std::uint64_t all : {13, 999}) {
        plan.layers_on_device = all;
        EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.weights, 127U);
        EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).host.weights, 103U);
        EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).host.cache, 0U);
    }
}

TEST(Layers, AllOnTheDeviceLeaveExchangeBuffersOnTheHost) {
    // llama.cpp: "CUDA_Host compute buffer size = 24.01 MiB", and 0.49 MiB of logits.
    InferencePlan plan = without_flash_attention(8192);
    plan.layers_on_device = 33;
    const MemoryEstimate whole = estimate_memory(llama_3_8b(), {}, plan);
    EXPECT_EQ(whole.host.compute, 24 * mib + 128256 * 4);
    EXPECT_EQ(whole.device.compute, 560 * mib);
}

TEST(Layers, TiedEmbeddingsAreCopiedToTheDevice) {
    const ModelWeights weights{100, std::vector<std::uint64_t>(12, 10), 7, 0, true};
    InferencePlan plan = plan_of(1024);
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).host.weights, 227U);
    plan.layers_on_device = 1;
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.weights, 107U);
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).host.weights, 220U);
}

TEST(Layers, BeyondTheHyperparametersStayOnTheHost) {
    const ModelWeights weights{0, std::vector<std::uint64_t>(14, 10), 0, 0, false};
    InferencePlan plan = plan_of(1024);
    plan.layers_on_device = 13;
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).device.weights, 120U);
    EXPECT_EQ(estimate_memory(gpt_2(), weights, plan).host.weights, 20U);
}

TEST(Estimates, Saturate) {
    ModelHyperparameters model = uniform("llama", 4096, 65536, 65536, 1 << 20);
    model.embedding = model.vocabulary = model.feed_forward = 1 << 26;
    InferencePlan plan = plan_of(1 << 30);
    plan.sequences = 65536;
    EXPECT_EQ(cache_of(model, plan), max_number);
    EXPECT_EQ(estimate_memory(model, {}, plan).host.total(), max_number);
}

TEST(Estimates, RejectACacheWhoseElementsHaveNoSize) {
    InferencePlan plan = plan_of(4096);
    plan.cache = {"q9", {.code = DataCode::ggml_block, .ggml_type = 200}};
    EXPECT_NE(problem_of_cache(llama_3_8b(), plan).find("is ggml type 200; expected"),
              std::string::npos);
    plan.cache = {};
    EXPECT_NE(problem_of_cache(llama_3_8b(), plan).find("is none; expected"), std::string::npos);
    EXPECT_THROW(layer_cache_bytes(llama_3_8b(), {32, 8, 0}, plan), std::invalid_argument);
    try {
        estimate_memory(llama_3_8b(), {}, plan);
        FAIL() << "a cache without a type was accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("cache is none; expected"), std::string::npos);
    }
}

TEST(ProblemOfACache, ReportsFlashAttentionAndLengthOfHeads) {
    EXPECT_EQ(problem_of_cache(llama_3_8b(), plan_of(4096, "q4_0")), "");
    InferencePlan plan = plan_of(4096, "q8_0");
    plan.flash_attention = false;
    EXPECT_EQ(problem_of_cache(llama_3_8b(), plan),
              "a cache of type q8_0 needs flash attention, which is disabled");
    // Phi-2 has heads of 80.
    EXPECT_NE(problem_of_cache(uniform("phi2", 32, 32, 32, 80), plan_of(2048, "q8_0")).find("80"),
              std::string::npos);
    EXPECT_EQ(problem_of_cache(uniform("phi2", 32, 32, 32, 80), without_flash_attention(2048)), "");
}

}  // namespace
}  // namespace tensorpool
