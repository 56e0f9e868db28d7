#include "model/estimate/fitting.hpp"

#include <gtest/gtest.h>

#include "model/saturating.hpp"
#include "tools/model/known_models.hpp"

namespace tensorpool::command::model {
namespace {

using namespace testing;

constexpr std::uint64_t mib = 1 << 20;

/// Llama 3 8B with 4.5 bits a weight: 120 MiB for each layer.
Weights llama_weights() {
    return {280 * mib, std::vector<std::uint64_t>(32, 120 * mib), 400 * mib, 0, false};
}

class Fit : public ::testing::Test {
protected:
    const Hyperparameters model_ = llama_3_8b();
    const Weights weights_ = llama_weights();

    std::uint64_t need(const Plan& plan) const {
        return estimate(model_, weights_, plan).host.total();
    }
    Fitter fitter(std::uint64_t host, std::uint64_t device = 0) const {
        return {model_, weights_, {host, device}};
    }
};

const Suggestion* find(const std::vector<Suggestion>& list, std::string_view beginning) {
    for (const Suggestion& suggestion : list) {
        if (suggestion.options.starts_with(beginning)) return &suggestion;
    }
    return nullptr;
}

TEST_F(Fit, IsExactToTheByte) {
    const Plan plan;
    EXPECT_TRUE(fitter(need(plan)).fits(plan));
    EXPECT_FALSE(fitter(need(plan) - 1).fits(plan));
}

TEST_F(Fit, LargestContextIsTheLastThatFits) {
    Plan plan;
    plan.context = 8192;
    const std::uint64_t room = need(plan);
    EXPECT_EQ(fitter(room).largest_context(plan, 1 << 20), 8192U);
    EXPECT_EQ(fitter(room - 1).largest_context(plan, 1 << 20), 8192U - 256);
    EXPECT_EQ(fitter(room).largest_context(plan, 4096), 4096U);
    EXPECT_EQ(fitter(max_number).largest_context(plan, 1 << 20), 1U << 20);
    EXPECT_EQ(fitter(1).largest_context(plan, 8192), 0U);
}

TEST_F(Fit, SuggestsASmallerContextCacheOrBatch) {
    Plan plan;
    plan.context = 8192;
    const auto list = fitter(need(plan) - 100 * mib).suggestions(plan);
    ASSERT_NE(find(list, "--kv-type q8_0"), nullptr);
    ASSERT_NE(find(list, "--kv-type q4_0"), nullptr);
    ASSERT_NE(find(list, "--context "), nullptr);
    ASSERT_NE(find(list, "--batch 256"), nullptr);
    EXPECT_EQ(find(list, "--sequences"), nullptr);
    EXPECT_EQ(find(list, "--flash-attention"), nullptr);
    EXPECT_EQ(find(list, "--layers-on-device"), nullptr);
}

TEST_F(Fit, SuggestionsFitAndTheNextLargerContextDoesNot) {
    Plan plan;
    plan.context = 32768;
    for (std::uint64_t less = 1; less < need(plan); less += 157 * mib) {
        const std::uint64_t room = need(plan) - less;
        for (const Suggestion& suggestion : fitter(room).suggestions(plan)) {
            EXPECT_LE(need(suggestion.plan), room) << suggestion.options;
            EXPECT_EQ(suggestion.estimate.host.total(), need(suggestion.plan));
            EXPECT_NE(suggestion.options, "");
        }
    }
    const auto list = fitter(need(plan) - 500 * mib).suggestions(plan);
    Plan larger = find(list, "--context")->plan;
    larger.context += 256;
    EXPECT_GT(need(larger), need(plan) - 500 * mib);
}

TEST_F(Fit, SuggestsSeveralChangesIfNeeded) {
    Plan plan;
    plan.context = 8192;
    plan.sequences = 2;
    Plan small = plan;
    small.context = 256;
    small.cache = *find_cache_type("q8_0");
    small.batch = 128;
    const auto list = fitter(need(small)).suggestions(plan);
    ASSERT_FALSE(list.empty());
    EXPECT_NE(find(list, "--context 256 --kv-type q8_0 --batch 128"), nullptr)
        << list.front().options;
}

TEST_F(Fit, HasNoSuggestionsIfNothingFits) {
    EXPECT_TRUE(fitter(weights_.total()).suggestions({}).empty());
    EXPECT_TRUE(fitter(0).suggestions({}).empty());
}

TEST_F(Fit, SuggestsFlashAttention) {
    Plan plan;
    plan.context = 8192;
    plan.flash_attention = false;
    const auto list = fitter(need(plan) - 1).suggestions(plan);
    ASSERT_NE(find(list, "--flash-attention on"), nullptr);
    // A quantised cache needs flash attention anyway.
    EXPECT_NE(find(list, "--kv-type q8_0 --flash-attention on"), nullptr);
}

TEST_F(Fit, SuggestsFewerSequences) {
    Plan plan;
    plan.sequences = 4;
    Plan three = plan;
    three.sequences = 3;
    const auto list = fitter(need(three)).suggestions(plan);
    EXPECT_NE(find(list, "--sequences 3"), nullptr);
}

TEST_F(Fit, SuggestsFewerLayersOnTheDevice) {
    Plan plan;
    plan.layers_on_device = 33;
    const std::uint64_t whole = estimate(model_, weights_, plan).device.total();
    const Fitter small = fitter(max_number, whole - 1);
    EXPECT_FALSE(small.fits(plan));
    const auto list = small.suggestions(plan);
    ASSERT_NE(find(list, "--layers-on-device 32"), nullptr);
    EXPECT_EQ(list.front().options, "--layers-on-device 32");
    EXPECT_TRUE(fitter(max_number, 0)
                    .suggestions(plan)
                    .front()
                    .options.starts_with("--layers-on-device 0"));
}

TEST_F(Fit, KeepsLayersOnTheDeviceIfOtherChangesSuffice) {
    Plan less;
    less.context = 256;
    less.sequences = 4;
    less.batch = 128;
    less.cache = *find_cache_type("q8_0");
    less.layers_on_device = 33;
    Plan one_on_host = less;
    one_on_host.layers_on_device = 32;
    const Fitter fitting = fitter(estimate(model_, weights_, one_on_host).host.total(),
                                  estimate(model_, weights_, less).device.total());
    Plan plan = less;
    plan.batch = 512;
    plan.cache = *find_cache_type("f16");
    const auto list = fitting.suggestions(plan);
    ASSERT_FALSE(list.empty());
    EXPECT_EQ(list.front().options, "--kv-type q8_0 --batch 128");
}

TEST_F(Fit, KeepsTheCacheTypeIfHeadsDoNotAllowAnother) {
    const Hyperparameters phi = uniform("phi2", 32, 32, 32, 80);
    Plan plan;
    const std::uint64_t room = estimate(phi, {}, plan).host.total() - 1;
    const Weights none;
    const auto list = Fitter(phi, none, {room, 0}).suggestions(plan);
    EXPECT_EQ(find(list, "--kv-type"), nullptr);
    EXPECT_NE(find(list, "--context 3840"), nullptr);
}

}  // namespace
}  // namespace tensorpool::command::model
