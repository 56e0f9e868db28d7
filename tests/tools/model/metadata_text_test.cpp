#include "inspect/model/model_report.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::model {
namespace {

using namespace std::string_view_literals;

template <class Element>
MetadataArray array_of(std::string_view type, const std::vector<Element>& elements) {
    return {type, elements.size(), std::as_bytes(std::span(elements))};
}

TEST(MetadataText, ShowsSingleValuesUnchanged) {
    EXPECT_EQ(text_of(true), "true");
    EXPECT_EQ(text_of(std::int64_t{-3}), "-3");
    EXPECT_EQ(text_of(std::uint64_t{128256}), "128256");
    EXPECT_EQ(text_of(1e-5), "1e-05");
    EXPECT_EQ(text_of(500000.0), "500000");
    EXPECT_EQ(text_of("llama"sv), "llama");
}

TEST(MetadataText, CutsLongAndMultilineStrings) {
    EXPECT_EQ(text_of("{% if %}\nmore"sv), "{% if %}... (13 bytes)");
    const std::string ascii(2000, 'a');
    EXPECT_EQ(text_of(std::string_view(ascii)), std::string(60, 'a') + "... (2,000 bytes)");
    // The 60th byte is within a UTF-8 character.
    const std::string german = std::string(59, 'a') + "\xc3\xa4" + std::string(9, 'a');
    EXPECT_EQ(text_of(std::string_view(german)), std::string(59, 'a') + "... (70 bytes)");
}

TEST(MetadataText, CountsArraysAndShowsShortOnes) {
    const std::vector<std::uint32_t> few = {8, 4, 2};
    const std::vector<std::int32_t> many(151936);
    EXPECT_EQ(text_of(array_of("u32", few)), "[8, 4, 2]");
    EXPECT_EQ(text_of(array_of("i32", many)), "array of 151,936 i32s");
    EXPECT_EQ(text_of(MetadataArray{"string", 1, {}}), "array of 1 string");
    EXPECT_EQ(text_of(MetadataArray{"i32", 0, {}}), "[]");
}

}  // namespace
}  // namespace tensorpool::command::model
