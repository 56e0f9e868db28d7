#include "models/estimate/hyperparameter_source.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tensorpool::files {
namespace {

using Values = std::vector<std::int64_t>;

/// The hyperparameters of Llama 3 8B, which tests change.
class MadeHyperparameters final : public HyperparameterSource {
public:
    std::map<Hyperparameter, Values> parameters = {
        {Hyperparameter::layers, {32}},         {Hyperparameter::context, {8192}},
        {Hyperparameter::embedding, {4096}},    {Hyperparameter::feed_forward, {14336}},
        {Hyperparameter::heads, {32}},          {Hyperparameter::key_value_heads, {8}},
        {Hyperparameter::vocabulary, {128256}},
    };
    std::string name_of(Hyperparameter parameter) const override {
        return "parameter " + std::to_string(static_cast<int>(parameter));
    }
    std::optional<Values> find(Hyperparameter parameter) const override {
        const auto found = parameters.find(parameter);
        return found == parameters.end() ? std::nullopt : std::optional(found->second);
    }
    const std::string& architecture() const noexcept override { return architecture_; }
    const std::string& file() const override { return file_; }
    void set_architecture(const char* name) { architecture_ = name; }

private:
    std::string file_ = "made";
    std::string architecture_ = "llama";
};

ModelHyperparameters read(MadeHyperparameters parameters, const char* architecture = "llama") {
    parameters.set_architecture(architecture);
    return read_hyperparameters(parameters, *find_family(architecture));
}

/// Returns the error for these parameters; "" if there is none.
std::string complaint(const MadeHyperparameters& parameters) try {
    read(parameters);
    return "";
} catch (const HyperparameterError& error) {
    return error.what();
}

std::string complaint(Hyperparameter parameter, Values values) {
    MadeHyperparameters parameters;
    parameters.parameters[parameter] = std::move(values);
    return complaint(parameters);
}

TEST(ReadHyperparameters, ReadsGivenValues) {
    const ModelHyperparameters model = read({});
    EXPECT_EQ(model.architecture, "llama");
    EXPECT_EQ(model.layers.size(), 32U);
    EXPECT_EQ(model.layers[31].heads, 32U);
    EXPECT_EQ(model.layers[31].key_value_heads, 8U);
    EXPECT_EQ(model.layers[31].window, 0U);
    EXPECT_EQ(model.key_length, 128U);
    EXPECT_EQ(model.value_length, 128U);
    EXPECT_EQ(model.feed_forward, 14336U);
    EXPECT_EQ(model.vocabulary, 128256U);
    EXPECT_EQ(model.context, 8192U);
}

TEST(ReadHyperparameters, ReadsGivenLengthsOfHeads) {
    MadeHyperparameters parameters;
    parameters.parameters[Hyperparameter::key_length] = {96};
    EXPECT_EQ(read(parameters).key_length, 96U);
    EXPECT_EQ(read(parameters).value_length, 96U);
    parameters.parameters[Hyperparameter::value_length] = {64};
    EXPECT_EQ(read(parameters).value_length, 64U);
}

TEST(ReadHyperparameters, WithoutGroupsEachHeadHasItsOwnKeys) {
    MadeHyperparameters parameters;
    parameters.parameters.erase(Hyperparameter::key_value_heads);
    EXPECT_EQ(read(parameters).layers[0].key_value_heads, 32U);
}

TEST(ReadHyperparameters, ReadsAnArrayWithANumberForEachLayer) {
    MadeHyperparameters parameters;
    parameters.parameters[Hyperparameter::layers] = {3};
    parameters.parameters[Hyperparameter::key_value_heads] = {8, 4, 2};
    parameters.parameters[Hyperparameter::feed_forward] = {100, 300, 200};
    EXPECT_EQ(read(parameters).layers[2].key_value_heads, 2U);
    EXPECT_EQ(read(parameters).feed_forward, 300U);
    parameters.parameters[Hyperparameter::key_value_heads] = {8, 4};
    EXPECT_EQ(complaint(parameters),
              "made: parameter 5 has 2 values; expected one, or one for each of 3 layers");
}

TEST(ReadHyperparameters, CountsAllExpertsOfAToken) {
    MadeHyperparameters parameters;
    parameters.parameters[Hyperparameter::experts_used] = {2};
    EXPECT_EQ(read(parameters).feed_forward, 2 * 14336U);
    parameters.parameters[Hyperparameter::expert_feed_forward] = {768};
    parameters.parameters[Hyperparameter::shared_feed_forward] = {100};
    EXPECT_EQ(read(parameters).feed_forward, 2 * 768U + 100);
    EXPECT_EQ(read(parameters).experts_used, 2U);
}

std::vector<std::uint64_t> windows_of(const ModelHyperparameters& model) {
    std::vector<std::uint64_t> windows;
    for (const AttentionLayer& layer : model.layers) windows.push_back(layer.window);
    return windows;
}

TEST(ReadHyperparameters, AssignsWindowsByFamily) {
    MadeHyperparameters parameters;
    parameters.parameters[Hyperparameter::layers] = {7};
    EXPECT_EQ(windows_of(read(parameters, "gemma2")),
              (std::vector<std::uint64_t>{4096, 0, 4096, 0, 4096, 0, 4096}));
    EXPECT_EQ(windows_of(read(parameters, "gemma3")), std::vector<std::uint64_t>(7));
    parameters.parameters[Hyperparameter::window] = {512};
    EXPECT_EQ(windows_of(read(parameters, "gemma3")),
              (std::vector<std::uint64_t>{512, 512, 512, 512, 512, 0, 512}));
    parameters.parameters[Hyperparameter::window_period] = {3};
    EXPECT_EQ(windows_of(read(parameters, "gemma3")),
              (std::vector<std::uint64_t>{512, 512, 0, 512, 512, 0, 512}));
    parameters.parameters[Hyperparameter::window_period] = {1, 0, 0, 0, 0, 0, 1};
    EXPECT_EQ(windows_of(read(parameters, "gemma3")),
              (std::vector<std::uint64_t>{512, 0, 0, 0, 0, 0, 512}));
}

TEST(ReadHyperparameters, RecordsAnUnusedWindowSeparately) {
    MadeHyperparameters parameters;
    parameters.parameters[Hyperparameter::window] = {2047};
    const ModelHyperparameters model = read(parameters, "phi3");
    EXPECT_EQ(windows_of(model), std::vector<std::uint64_t>(32));
    EXPECT_EQ(model.unused_window, 2047U);
}

TEST(ReadHyperparameters, NamesMissingValues) {
    for (const Hyperparameter parameter : {Hyperparameter::layers, Hyperparameter::embedding,
                                           Hyperparameter::heads, Hyperparameter::vocabulary}) {
        MadeHyperparameters parameters;
        parameters.parameters.erase(parameter);
        EXPECT_TRUE(complaint(parameters)
                        .starts_with("made: " + parameters.name_of(parameter) +
                                     " is missing; expected a whole number from 1 "))
            << complaint(parameters);
    }
}

TEST(ReadHyperparameters, RejectsValuesOutOfBounds) {
    EXPECT_EQ(complaint(Hyperparameter::heads, {0}),
              "made: parameter 4 is 0; expected a whole number from 1 to 65536");
    EXPECT_EQ(complaint(Hyperparameter::layers, {1'000'000'000}),
              "made: parameter 0 is 1000000000; expected a whole number from 1 to 4096");
    EXPECT_EQ(complaint(Hyperparameter::embedding, {-1}),
              "made: parameter 2 is -1; expected a whole number from 1 to 67108864");
    EXPECT_EQ(complaint(Hyperparameter::heads, {}),
              "made: parameter 4 has no value; expected a whole number from 1 to 65536");
    for (const auto& [parameter, value] : std::map<Hyperparameter, std::int64_t>{
             {Hyperparameter::context, -1},
             {Hyperparameter::key_length, 0},
             {Hyperparameter::value_length, std::int64_t{1} << 62},
             {Hyperparameter::window, -5},
             {Hyperparameter::key_value_heads, 0},
             {Hyperparameter::vocabulary, 0},
             {Hyperparameter::experts_used, 1 << 20}}) {
        EXPECT_NE(complaint(parameter, {value}), "") << static_cast<int>(parameter);
    }
}

TEST(ReadHyperparameters, RejectsGroupsThatDoNotDivideTheHeads) {
    EXPECT_EQ(
        complaint(Hyperparameter::key_value_heads, {5}),
        "made: parameter 5 is 5 in layer 0; expected a divisor of its 32 heads (parameter 4)");
    EXPECT_NE(complaint(Hyperparameter::key_value_heads, {64}), "");
}

}  // namespace
}  // namespace tensorpool::files
