#include <tensorpool/model_estimate.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/detail/saturating.hpp>

#include "support/known_models.hpp"

namespace tensorpool {
namespace {

using namespace testing;
using detail::max_number;

constexpr std::uint64_t mib = 1 << 20;

/// Llama 3 8B with 4.5 bits a weight: 120 MiB for each layer.
ModelWeights llama_weights() {
    return {280 * mib, std::vector<std::uint64_t>(32, 120 * mib), 400 * mib, 0, false};
}

class Fit : public ::testing::Test {
protected:
    const ModelHyperparameters model_ = llama_3_8b();
    const ModelWeights weights_ = llama_weights();

    std::uint64_t need(const InferencePlan& plan) const {
        return estimate_memory(model_, weights_, plan).host.total();
    }
    PlanFitter fitter(std::uint64_t host, std::uint64_t device = 0) const {
        return {model_, weights_, {host, device}};
    }
};

/// Returns the changes between two plans as text: "--context 256 --kv-type q8_0".
std::string changes(const InferencePlan& from, const InferencePlan& to) {
    std::string text;
    const auto add = [&](const char* name, std::uint64_t before, std::uint64_t after) {
        if (before != after) text += std::string(name) + ' ' + std::to_string(after) + ' ';
    };
    add("--layers-on-device", from.layers_on_device, to.layers_on_device);
    add("--context", from.context, to.context);
    add("--sequences", from.sequences, to.sequences);
    if (from.cache != to.cache) text += "--kv-type " + std::string(to.cache.name) + ' ';
    if (from.flash_attention != to.flash_attention) text += "--flash-attention on ";
    add("--batch", from.batch, to.batch);
    if (!text.empty()) text.pop_back();
    return text;
}

struct Suggestion {
    std::string options;
    InferencePlan plan;
    MemoryEstimate estimate;
};

std::vector<Suggestion> suggestions_of(const PlanFitter& fitter, const InferencePlan& plan) {
    std::vector<Suggestion> list;
    for (const PlanSuggestion& found : fitter.suggestions(plan)) {
        list.push_back({changes(plan, found.plan), found.plan, found.estimate});
    }
    return list;
}

const Suggestion* find(const std::vector<Suggestion>& list, std::string_view beginning) {
    for (const Suggestion& suggestion : list) {
        if (suggestion.options.starts_with(beginning)) return &suggestion;
    }
    return nullptr;
}

TEST_F(Fit, IsExactToTheByte) {
    const InferencePlan plan;
    EXPECT_TRUE(fitter(need(plan)).fits(plan));
    EXPECT_FALSE(fitter(need(plan) - 1).fits(plan));
}

TEST_F(Fit, LargestContextIsTheLastThatFits) {
    InferencePlan plan;
    plan.context = 8192;
    const std::uint64_t room = need(plan);
    EXPECT_EQ(fitter(room).largest_context(plan, 1 << 20), 8192U);
    EXPECT_EQ(fitter(room - 1).largest_context(plan, 1 << 20), 8192U - 256);
    EXPECT_EQ(fitter(room).largest_context(plan, 4096), 4096U);
    EXPECT_EQ(fitter(max_number).largest_context(plan, 1 << 20), 1U << 20);
    EXPECT_EQ(fitter(1).largest_context(plan, 8192), 0U);
}

TEST_F(Fit, SuggestsASmallerContextCacheOrBatch) {
    InferencePlan plan;
    plan.context = 8192;
    const auto list = suggestions_of(fitter(need(plan) - 100 * mib), plan);
    ASSERT_NE(find(list, "--kv-type q8_0"), nullptr);
    ASSERT_NE(find(list, "--kv-type q4_0"), nullptr);
    ASSERT_NE(find(list, "--context "), nullptr);
    ASSERT_NE(find(list, "--batch 256"), nullptr);
    EXPECT_EQ(find(list, "--sequences"), nullptr);
    EXPECT_EQ(find(list, "--flash-attention"), nullptr);
    EXPECT_EQ(find(list, "--layers-on-device"), nullptr);
}

TEST_F(Fit, SuggestionsFitAndTheNextLargerContextDoesNot) {
    InferencePlan plan;
    plan.context = 32768;
    for (std::uint64_t less = 1; less < need(plan); less += 157 * mib) {
        const std::uint64_t room = need(plan) - less;
        for (const Suggestion& suggestion : suggestions_of(fitter(room), plan)) {
            EXPECT_LE(need(suggestion.plan), room) << suggestion.options;
            EXPECT_EQ(suggestion.estimate.host.total(), need(suggestion.plan));
            EXPECT_NE(suggestion.options, "");
        }
    }
    const auto list = suggestions_of(fitter(need(plan) - 500 * mib), plan);
    InferencePlan larger = find(list, "--context")->plan;
    larger.context += 256;
    EXPECT_GT(need(larger), need(plan) - 500 * mib);
}

TEST_F(Fit, SuggestsSeveralChangesIfNeeded) {
    InferencePlan plan;
    plan.context = 8192;
    plan.sequences = 2;
    InferencePlan small = plan;
    small.context = 256;
    small.cache = *find_kv_cache_type("q8_0");
    small.batch = 128;
    const auto list = suggestions_of(fitter(need(small)), plan);
    ASSERT_FALSE(list.empty());
    EXPECT_NE(find(list, "--context 256 --kv-type q8_0 --batch 128"), nullptr)
        << list.front().options;
}

TEST_F(Fit, HasNoSuggestionsIfNothingFits) {
    EXPECT_TRUE(suggestions_of(fitter(weights_.total()), {}).empty());
    EXPECT_TRUE(suggestions_of(fitter(0), {}).empty());
}

TEST_F(Fit, SuggestsFlashAttention) {
    InferencePlan plan;
    plan.context = 8192;
    plan.flash_attention = false;
    const auto list = suggestions_of(fitter(need(plan) - 1), plan);
    ASSERT_NE(find(list, "--flash-attention on"), nullptr);
    // A quantised cache needs flash attention anyway.
    EXPECT_NE(find(list, "--kv-type q8_0 --flash-attention on"), nullptr);
}

TEST_F(Fit, SuggestsFewerSequences) {
    InferencePlan plan;
    plan.sequences = 4;
    InferencePlan three = plan;
    three.sequences = 3;
    const auto list = suggestions_of(fitter(need(three)), plan);
    EXPECT_NE(find(list, "--sequences 3"), nullptr);
}

TEST_F(Fit, SuggestsFewerLayersOnTheDevice) {
    InferencePlan plan;
    plan.layers_on_device = 33;
    const std::uint64_t whole = estimate_memory(model_, weights_, plan).device.total();
    const PlanFitter small = fitter(max_number, whole - 1);
    EXPECT_FALSE(small.fits(plan));
    const auto list = suggestions_of(small, plan);
    ASSERT_NE(find(list, "--layers-on-device 32"), nullptr);
    EXPECT_EQ(list.front().options, "--layers-on-device 32");
    EXPECT_TRUE(suggestions_of(fitter(max_number, 0), plan)
                    .front()
                    .options.starts_with("--layers-on-device 0"));
}

TEST_F(Fit, AnyNumberFromAllLayersOnMeansAll) {
    InferencePlan plan;
    plan.layers_on_device = 33;
    const MemoryEstimate whole = estimate_memory(model_, weights_, plan);
    const PlanFitter large = fitter(max_number, whole.device.total());
    const PlanFitter small = fitter(max_number, whole.device.total() - 1);
    plan.layers_on_device = max_number;
    EXPECT_EQ(large.max_layers(plan), max_number);
    EXPECT_EQ(small.max_layers(plan), 32U);
    EXPECT_EQ(suggestions_of(small, plan).front().options, "--layers-on-device 32");
    EXPECT_EQ(fitter(0, 0).max_layers(plan), max_number);
    plan.layers_on_device = 0;
    EXPECT_EQ(small.max_layers(plan), 0U);
}

TEST_F(Fit, SuggestsNothingLargerThanTheRequest) {
    for (const std::uint64_t room : {std::uint64_t{0}, need({}), max_number}) {
        InferencePlan plan;
        plan.context = 0;
        EXPECT_EQ(find(suggestions_of(fitter(room), plan), "--context"), nullptr);
        plan = {};
        plan.batch = 0;
        EXPECT_EQ(find(suggestions_of(fitter(room), plan), "--batch"), nullptr);
        plan = {};
        plan.sequences = 0;
        EXPECT_EQ(find(suggestions_of(fitter(room), plan), "--sequences"), nullptr);
    }
}

TEST_F(Fit, KeepsLayersOnTheDeviceIfOtherChangesSuffice) {
    InferencePlan less;
    less.context = 256;
    less.sequences = 4;
    less.batch = 128;
    less.cache = *find_kv_cache_type("q8_0");
    less.layers_on_device = 33;
    InferencePlan one_on_host = less;
    one_on_host.layers_on_device = 32;
    const PlanFitter fitting = fitter(estimate_memory(model_, weights_, one_on_host).host.total(),
                                      estimate_memory(model_, weights_, less).device.total());
    InferencePlan plan = less;
    plan.batch = 512;
    plan.cache = *find_kv_cache_type("f16");
    const auto list = suggestions_of(fitting, plan);
    ASSERT_FALSE(list.empty());
    EXPECT_EQ(list.front().options, "--kv-type q8_0 --batch 128");
}

TEST_F(Fit, KeepsTheCacheTypeIfHeadsDoNotAllowAnother) {
    const ModelHyperparameters phi = uniform("phi2", 32, 32, 32, 80);
    InferencePlan plan;
    const std::uint64_t room = estimate_memory(phi, {}, plan).host.total() - 1;
    const ModelWeights none;
    const auto list = suggestions_of(PlanFitter(phi, none, {room, 0}), plan);
    EXPECT_EQ(find(list, "--kv-type"), nullptr);
    EXPECT_NE(find(list, "--context 3840"), nullptr);
}

}  // namespace
}  // namespace tensorpool
