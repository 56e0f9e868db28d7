#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <tensorpool/model_file.hpp>

#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

ModelGuess guess(std::string_view first) {
    return guess_model_format(std::as_bytes(std::span(first)));
}

TEST(ModelGuess, DetectsEachFormatByItsFirstBytes) {
    EXPECT_EQ(guess_model_format(testing::GgufWriter().write().view()), ModelGuess::gguf);
    EXPECT_EQ(guess_model_format(testing::SafetensorsWriter().write().view()),
              ModelGuess::safetensors);
    EXPECT_EQ(guess_model_format(testing::npy_file("", "").view()), ModelGuess::npy);
    EXPECT_EQ(guess_model_format(testing::ZipWriter().write().view()), ModelGuess::zip);
    EXPECT_EQ(
        guess_model_format(testing::ZipWriter().add("a", testing::WrittenFile()).write().view()),
        ModelGuess::zip);
}

TEST(ModelGuess, DetectsNothingInOtherData) {
    for (const std::string_view text : {"", "G", "GGU", "GGML", "gguf", "\x93NUMP", "PK",
                                        "PK\x01\x02", "function{", "{\"a\": 1}"}) {
        EXPECT_EQ(guess(text), ModelGuess::none) << text;
    }
    EXPECT_EQ(guess(std::string(100, '\0')), ModelGuess::none);
    // A header length without a header.
    EXPECT_EQ(guess(std::string("\x02\0\0\0\0\0\0\0", 8)), ModelGuess::none);
}

TEST(ModelFormat, HasNames) {
    EXPECT_STREQ(to_string(ModelFormat::gguf), "GGUF");
    EXPECT_STREQ(to_string(ModelFormat::safetensors), "safetensors");
    EXPECT_STREQ(to_string(ModelFormat::npy), "npy");
    EXPECT_STREQ(to_string(ModelFormat::npz), "npz");
}

}  // namespace
}  // namespace tensorpool
