#include "models/estimate/hyperparameter_source.hpp"

#include <gtest/gtest.h>

#include <tensorpool/model_hyperparameters.hpp>

namespace tensorpool::files {
namespace {

TEST(Families, AreFoundByTheNameOfTheArchitecture) {
    for (const char* const name : {"llama", "qwen2", "qwen3moe", "gemma3", "phi3", "gpt2"}) {
        ASSERT_NE(find_family(name), nullptr) << name;
    }
    EXPECT_EQ(find_family("mamba"), nullptr);
    EXPECT_EQ(find_family(""), nullptr);
    EXPECT_TRUE(known_architectures().starts_with("llama, "));
}

TEST(Families, OfGemmaHaveWindowsInSomeLayers) {
    EXPECT_TRUE(has_window(0, find_family("gemma2")->period));
    EXPECT_FALSE(has_window(1, find_family("gemma2")->period));
    EXPECT_TRUE(has_window(2, find_family("gemma2")->period));
    for (std::uint64_t layer = 0; layer < 24; ++layer) {
        EXPECT_EQ(has_window(layer, find_family("gemma3")->period), layer % 6 != 5) << layer;
        EXPECT_FALSE(has_window(layer, find_family("llama")->period));
    }
}

}  // namespace
}  // namespace tensorpool::files
