
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "common/settings.hpp"
#include "inspect/model/model_report.hpp"
#include "support/known_models.hpp"

namespace tensorpool::command::model {
namespace {

using namespace tensorpool::testing;
using nlohmann::json;

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t gib = 1 << 30;

ModelWeights weights() {
    return {280 * mib, std::vector<std::uint64_t>(32, 120 * mib), 400 * mib, 0, false};
}

Estimation llama(const Request& request, AvailableMemory memory) {
    return make_estimation(llama_3_8b(), weights(), request, std::move(memory));
}

AvailableMemory with_device(std::uint64_t device_bytes) {
    return {64 * gib, 64 * gib, DeviceMemory{"a device", device_bytes, 8 * gib}};
}

TEST(Estimation, UsesTheDefaultContextWithinThatOfTheModel) {
    EXPECT_EQ(llama({}, {gib, gib, {}}).plan.context, 4096U);
    EXPECT_EQ(make_estimation(gpt_2(), {}, {}, {gib, gib, {}}).plan.context, 1024U);
    Request request;
    request.context = 9999;
    EXPECT_EQ(make_estimation(gpt_2(), {}, request, {gib, gib, {}}).plan.context, 9999U);
}

TEST(Estimation, ReportsWhetherItFitsAndAlternatives) {
    const Estimation fitting = llama({}, {16 * gib, 32 * gib, {}});
    EXPECT_TRUE(fitting.fits);
    EXPECT_TRUE(fitting.suggestions.empty());
    EXPECT_EQ(fitting.largest_context, 8192U);
    const std::string text = estimation_text(fitting, Sizes::iec);
    EXPECT_NE(text.find("It fits and leaves 10.8 GiB; so does a context of 8,192.\n"),
              std::string::npos)
        << text;
    const Estimation tight = llama({}, {5 * gib, 32 * gib, {}});
    EXPECT_FALSE(tight.fits);
    ASSERT_FALSE(tight.suggestions.empty());
    const std::string advice = estimation_text(tight, Sizes::iec);
    EXPECT_NE(advice.find("It does not fit: 171 MiB more than this machine has available.\n"),
              std::string::npos)
        << advice;
    EXPECT_NE(advice.find("\nWITH "), std::string::npos);
}

TEST(Estimation, ReportsIfNothingFits) {
    const std::string text = estimation_text(llama({}, {gib, gib, {}}), Sizes::iec);
    EXPECT_NE(text.find("the weights alone are 4.41 GiB"), std::string::npos) << text;
}

TEST(Estimation, PutsAllLayersOnAGivenDevice) {
    Request request;
    request.device_bytes = 8 * gib;
    const Estimation estimation = llama(request, with_device(8 * gib));
    EXPECT_EQ(estimation.plan.layers_on_device, 33U);
    EXPECT_TRUE(estimation.fits);
    const std::string text = estimation_text(estimation, Sizes::iec);
    EXPECT_NE(text.find("33 of 33 layers (the output counts as one) on a device."),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(" HOST   DEVICE\n"), std::string::npos) << text;
    EXPECT_NE(text.find(" on the device"), std::string::npos);
}

TEST(Estimation, PutsTheRequestedLayersOnTheDevice) {
    Request request;
    request.layers_on_device = 10;
    EXPECT_EQ(llama(request, with_device(gib)).plan.layers_on_device, 10U);
    request.layers_on_device = 999;
    const Estimation estimation = llama(request, with_device(gib));
    EXPECT_EQ(estimation.plan.layers_on_device, 33U);
    EXPECT_FALSE(estimation.fits);
    EXPECT_TRUE(options_between(estimation.plan, estimation.suggestions.front().plan)
                    .starts_with("--layers-on-device "));
    const std::string text = estimation_text(estimation, Sizes::iec);
    EXPECT_NE(text.find("more than the device has available"), std::string::npos) << text;
}

TEST(Estimation, SuggestsLayersForAnUnusedDevice) {
    const Estimation estimation = llama({}, with_device(3 * gib));
    EXPECT_EQ(estimation.plan.layers_on_device, 0U);
    EXPECT_GT(estimation.fitting_layers, 10U);
    EXPECT_LT(estimation.fitting_layers, 33U);
    const std::string text = estimation_text(estimation, Sizes::iec);
    EXPECT_NE(text.find("a device has 3.00 GiB of 8.00 GiB free, enough for " +
                        std::to_string(estimation.fitting_layers) + " of 33 layers"),
              std::string::npos)
        << text;
    EXPECT_EQ(estimation_text(llama({}, {gib, gib, {}}), Sizes::iec).find("device"),
              std::string::npos);
}

TEST(Estimation, RejectsAnUnsupportedCacheType) {
    Request request;
    request.cache = "q8_0";
    request.flash_attention = false;
    try {
        llama(request, {gib, gib, {}});
        FAIL();
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), wrong_usage);
        EXPECT_STREQ(error.what(), "a cache of type q8_0 needs flash attention, which is disabled");
    }
}

TEST(Estimation, NotesAnUnusedWindowAndALongContext) {
    Request request;
    request.context = 8192;
    const Estimation estimation =
        make_estimation(phi_3_mini(), {}, request, {16 * gib, 16 * gib, {}});
    const std::string text = estimation_text(estimation, Sizes::iec);
    EXPECT_NE(text.find("trained for 4,096 positions"), std::string::npos) << text;
    // 2,047 + 512 positions, rounded up to 2,560, of 384 KiB.
    EXPECT_NE(text.find("would take 960\nMiB"), std::string::npos) << text;
    EXPECT_NE(text.find("3.00 GiB"), std::string::npos) << text;
}

TEST(Estimation, OfAnUnknownModelHasOnlyWeights) {
    Estimation estimation = make_estimation(std::nullopt, weights(), {}, {5 * gib, 8 * gib, {}});
    estimation.why_unknown = "Its architecture is mamba.";
    EXPECT_TRUE(estimation.fits);
    const std::string text = estimation_text(estimation, Sizes::iec);
    EXPECT_NE(text.find("Its architecture is mamba. So only the weights are reported.\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("They fit and leave 600 MiB.\n"), std::string::npos) << text;
    const Estimation large = make_estimation(std::nullopt, weights(), {}, {gib, 8 * gib, {}});
    EXPECT_FALSE(large.fits);
    EXPECT_NE(estimation_text(large, Sizes::iec).find("They do not fit: 3.41 GiB more"),
              std::string::npos);
    EXPECT_EQ(json::parse(estimation_json(large))["fits"], false);
}

TEST(Estimation, WindowsFitInto80Columns) {
    const std::string text =
        estimation_text(make_estimation(gemma_2_9b(), {}, {}, {gib, gib, {}}), Sizes::iec);
    EXPECT_NE(text.find("\nwindow                   4,096  positions in 21 layers\n"),
              std::string::npos)
        << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(EstimationJson, ContainsAllValues) {
    Request request;
    request.device_bytes = 2 * gib;
    const Estimation estimation = llama(request, with_device(2 * gib));
    const json read = json::parse(estimation_json(estimation));
    EXPECT_EQ(read["fits"], false);
    EXPECT_EQ(read["plan"]["layers_on_device"], 33);
    EXPECT_EQ(read["plan"]["kv_type"], "f16");
    EXPECT_EQ(read["device"]["cache_bytes"], 512 * mib);
    EXPECT_EQ(read["host"]["weights_bytes"], 280 * mib);
    EXPECT_EQ(read["memory"]["available_bytes"], 64 * gib);
    EXPECT_EQ(read["memory"]["device"]["name"], "a device");
    EXPECT_EQ(read["hyperparameters"]["layers"].size(), 32U);
    EXPECT_EQ(read["hyperparameters"]["layers"][0]["key_value_heads"], 8);
    ASSERT_FALSE(read["suggestions"].empty());
    EXPECT_LE(read["suggestions"][0]["device"]["bytes"], 2 * gib);
    EXPECT_TRUE(json::parse(estimation_json(llama({}, {gib, gib, {}})))["device"].is_null());
}

}  // namespace
}  // namespace tensorpool::command::model
