#include "model/estimate/figure_source.hpp"

#include <gtest/gtest.h>

#include <map>

#include "common/settings.hpp"

namespace tensorpool::command::model {
namespace {

using Values = std::vector<std::int64_t>;

/// Of Llama 3 8B, but for what a test changes.
class MadeFigures final : public FigureSource {
public:
    std::map<Figure, Values> figures = {
        {Figure::layers, {32}},          {Figure::context, {8192}}, {Figure::embedding, {4096}},
        {Figure::feed_forward, {14336}}, {Figure::heads, {32}},     {Figure::key_value_heads, {8}},
        {Figure::vocabulary, {128256}},
    };
    std::string name_of(Figure figure) const override {
        return "figure " + std::to_string(static_cast<int>(figure));
    }
    std::optional<Values> find(Figure figure) const override {
        const auto found = figures.find(figure);
        return found == figures.end() ? std::nullopt : std::optional(found->second);
    }
    const std::string& file() const override { return file_; }

private:
    std::string file_ = "made";
};

Hyperparameters read(const MadeFigures& figures, const char* architecture = "llama") {
    return read_hyperparameters(figures, *find_family(architecture), architecture);
}

/// What is said of these figures; "" where nothing is wrong.
std::string complaint(const MadeFigures& figures) try {
    read(figures);
    return "";
} catch (const CommandError& error) {
    EXPECT_EQ(error.code(), unusable);
    return error.what();
}

std::string complaint(Figure figure, Values values) {
    MadeFigures figures;
    figures.figures[figure] = std::move(values);
    return complaint(figures);
}

TEST(ReadHyperparameters, TakesWhatIsTold) {
    const Hyperparameters model = read({});
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

TEST(ReadHyperparameters, TakesTheLengthsOfHeadsThatAreTold) {
    MadeFigures figures;
    figures.figures[Figure::key_length] = {96};
    EXPECT_EQ(read(figures).key_length, 96U);
    EXPECT_EQ(read(figures).value_length, 96U);
    figures.figures[Figure::value_length] = {64};
    EXPECT_EQ(read(figures).value_length, 64U);
}

TEST(ReadHyperparameters, WithoutGroupsEachHeadHasItsOwnKeys) {
    MadeFigures figures;
    figures.figures.erase(Figure::key_value_heads);
    EXPECT_EQ(read(figures).layers[0].key_value_heads, 32U);
}

TEST(ReadHyperparameters, TakesAnArrayWithANumberForEachLayer) {
    MadeFigures figures;
    figures.figures[Figure::layers] = {3};
    figures.figures[Figure::key_value_heads] = {8, 4, 2};
    figures.figures[Figure::feed_forward] = {100, 300, 200};
    EXPECT_EQ(read(figures).layers[2].key_value_heads, 2U);
    EXPECT_EQ(read(figures).feed_forward, 300U);
    figures.figures[Figure::key_value_heads] = {8, 4};
    EXPECT_EQ(complaint(figures),
              "made: figure 5 has 2 values; expected one, or one for each of 3 layers");
}

TEST(ReadHyperparameters, CountsAllExpertsThatWorkOnAToken) {
    MadeFigures figures;
    figures.figures[Figure::experts_used] = {2};
    EXPECT_EQ(read(figures).feed_forward, 2 * 14336U);
    figures.figures[Figure::expert_feed_forward] = {768};
    figures.figures[Figure::shared_feed_forward] = {100};
    EXPECT_EQ(read(figures).feed_forward, 2 * 768U + 100);
    EXPECT_EQ(read(figures).experts_used, 2U);
}

std::vector<std::uint64_t> windows_of(const Hyperparameters& model) {
    std::vector<std::uint64_t> windows;
    for (const AttentionLayer& layer : model.layers) windows.push_back(layer.window);
    return windows;
}

TEST(ReadHyperparameters, GivesWindowsToTheLayersOfTheFamily) {
    MadeFigures figures;
    figures.figures[Figure::layers] = {7};
    EXPECT_EQ(windows_of(read(figures, "gemma2")),
              (std::vector<std::uint64_t>{4096, 0, 4096, 0, 4096, 0, 4096}));
    EXPECT_EQ(windows_of(read(figures, "gemma3")), std::vector<std::uint64_t>(7));
    figures.figures[Figure::window] = {512};
    EXPECT_EQ(windows_of(read(figures, "gemma3")),
              (std::vector<std::uint64_t>{512, 512, 512, 512, 512, 0, 512}));
    figures.figures[Figure::window_period] = {3};
    EXPECT_EQ(windows_of(read(figures, "gemma3")),
              (std::vector<std::uint64_t>{512, 512, 0, 512, 512, 0, 512}));
    figures.figures[Figure::window_period] = {1, 0, 0, 0, 0, 0, 1};
    EXPECT_EQ(windows_of(read(figures, "gemma3")),
              (std::vector<std::uint64_t>{512, 0, 0, 0, 0, 0, 512}));
}

TEST(ReadHyperparameters, KeepsAWindowApartThatIsNotUsed) {
    MadeFigures figures;
    figures.figures[Figure::window] = {2047};
    const Hyperparameters model = read(figures, "phi3");
    EXPECT_EQ(windows_of(model), std::vector<std::uint64_t>(32));
    EXPECT_EQ(model.unused_window, 2047U);
}

TEST(ReadHyperparameters, NamesWhatIsMissing) {
    for (const Figure figure :
         {Figure::layers, Figure::embedding, Figure::heads, Figure::vocabulary}) {
        MadeFigures figures;
        figures.figures.erase(figure);
        EXPECT_TRUE(complaint(figures).starts_with("made: " + figures.name_of(figure) +
                                                   " is missing; expected a whole number from 1 "))
            << complaint(figures);
    }
}

TEST(ReadHyperparameters, RefusesAbsurdFigures) {
    EXPECT_EQ(complaint(Figure::heads, {0}),
              "made: figure 4 is 0; expected a whole number from 1 to 65,536");
    EXPECT_EQ(complaint(Figure::layers, {1'000'000'000}),
              "made: figure 0 is 1,000,000,000; expected a whole number from 1 to 4,096");
    EXPECT_EQ(complaint(Figure::embedding, {-1}),
              "made: figure 2 is -1; expected a whole number from 1 to 67,108,864");
    EXPECT_EQ(complaint(Figure::heads, {}),
              "made: figure 4 has no value; expected a whole number from 1 to 65,536");
    for (const auto& [figure, value] :
         std::map<Figure, std::int64_t>{{Figure::context, -1},
                                        {Figure::key_length, 0},
                                        {Figure::value_length, std::int64_t{1} << 62},
                                        {Figure::window, -5},
                                        {Figure::key_value_heads, 0},
                                        {Figure::vocabulary, 0},
                                        {Figure::experts_used, 1 << 20}}) {
        EXPECT_NE(complaint(figure, {value}), "") << static_cast<int>(figure);
    }
}

TEST(ReadHyperparameters, RefusesGroupsThatDoNotDivideTheHeads) {
    EXPECT_EQ(complaint(Figure::key_value_heads, {5}),
              "made: figure 5 is 5 in layer 0; expected a divisor of its 32 heads (figure 4)");
    EXPECT_NE(complaint(Figure::key_value_heads, {64}), "");
}

}  // namespace
}  // namespace tensorpool::command::model
