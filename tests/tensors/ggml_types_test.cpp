#include "tensors/tensor_sizes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace tensorpool::tensors {
namespace {

/// Checks a block's elements and bytes against the parts of ggml's structures: scales of 2 bytes
/// (h), and the bits of each element.
TEST(GgmlTypes, BlocksHaveTheBytesOfTheirParts) {
    constexpr unsigned h = 2;
    const std::map<std::string, std::pair<unsigned, unsigned>> expected = {
        {"F32", {1, 4}},
        {"F16", {1, 2}},
        {"BF16", {1, 2}},
        {"F64", {1, 8}},
        {"I8", {1, 1}},
        {"I16", {1, 2}},
        {"I32", {1, 4}},
        {"I64", {1, 8}},
        {"Q4_0", {32, h + 32 * 4 / 8}},
        {"Q4_1", {32, 2 * h + 32 * 4 / 8}},
        {"Q5_0", {32, h + 32 * 5 / 8}},
        {"Q5_1", {32, 2 * h + 32 * 5 / 8}},
        {"Q8_0", {32, h + 32}},
        {"Q8_1", {32, 2 * h + 32}},
        {"Q2_K", {256, 16 + 256 * 2 / 8 + 2 * h}},
        {"Q3_K", {256, 256 * 3 / 8 + 12 + h}},
        {"Q4_K", {256, 2 * h + 12 + 256 * 4 / 8}},
        {"Q5_K", {256, 2 * h + 12 + 256 * 5 / 8}},
        {"Q6_K", {256, 256 * 6 / 8 + 16 + h}},
        {"Q8_K", {256, 4 + 256 + 16 * 2}},
        {"IQ1_S", {256, h + 256 / 8 + 8 * 2}},
        {"IQ1_M", {256, 256 / 8 + 256 / 16 + 256 / 32}},
        {"IQ2_XXS", {256, h + 256 * 2 / 8}},
        {"IQ2_XS", {256, h + 256 * 2 / 8 + 8}},
        {"IQ2_S", {256, h + 256 * 2 / 8 + 8 + 8}},
        {"IQ3_XXS", {256, h + 3 * 256 / 8}},
        {"IQ3_S", {256, h + 256 / 4 + 8 + 256 / 8 + 4}},
        {"IQ4_NL", {32, h + 32 * 4 / 8}},
        {"IQ4_XS", {256, 2 * h + 4 + 256 * 4 / 8}},
        {"TQ1_0", {256, h + 4 + 48}},
        {"TQ2_0", {256, h + 256 * 2 / 8}},
        {"MXFP4", {32, 1 + 32 * 4 / 8}},
        {"NVFP4", {64, 4 + 64 * 4 / 8}},
        {"Q1_0", {128, h + 128 / 8}},
        {"Q2_0", {64, h + 64 * 2 / 8}},
    };
    std::size_t seen = 0;
    for (std::uint32_t number = 0; number < ggml_type_count(); ++number) {
        const GgmlType& type = *ggml_type(number);
        if (type.removed()) continue;
        const auto found = expected.find(std::string(type.name));
        ASSERT_NE(found, expected.end()) << type.name;
        EXPECT_EQ(type.type.block_elements(), found->second.first) << type.name;
        EXPECT_EQ(type.type.block_bytes(), found->second.second) << type.name;
        ++seen;
    }
    EXPECT_EQ(seen, expected.size());
}

TEST(GgmlTypes, HaveTheirNumbers) {
    const std::map<std::uint32_t, std::string> names = {
        {0, "F32"},     {1, "F16"},      {2, "Q4_0"},    {3, "Q4_1"},     {4, "Q4_2"},
        {5, "Q4_3"},    {6, "Q5_0"},     {7, "Q5_1"},    {8, "Q8_0"},     {9, "Q8_1"},
        {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},   {13, "Q5_K"},    {14, "Q6_K"},
        {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
        {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},  {23, "IQ4_XS"},  {24, "I8"},
        {25, "I16"},    {26, "I32"},     {27, "I64"},    {28, "F64"},     {29, "IQ1_M"},
        {30, "BF16"},   {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"},   {40, "NVFP4"},
        {41, "Q1_0"},   {42, "Q2_0"}};
    for (const auto& [number, name] : names) EXPECT_EQ(ggml_type(number)->name, name);
    EXPECT_EQ(ggml_type(43), nullptr);
    EXPECT_EQ(ggml_type(~0U), nullptr);
}

TEST(GgmlTypes, RemovedTypesHaveNoBytes) {
    std::string removed;
    for (std::uint32_t number = 0; number < ggml_type_count(); ++number) {
        if (!ggml_type(number)->removed()) continue;
        EXPECT_EQ(ggml_type(number)->type.block_bytes(), 0U);
        removed += std::to_string(number) + ' ';
    }
    EXPECT_EQ(removed, "4 5 31 32 33 36 37 38 ");
}

TEST(GgmlTypes, PlainTypesAreThoseOfDLPack) {
    EXPECT_EQ(find_ggml_type(0), DataType::of<float>());
    EXPECT_EQ(find_ggml_type(26), DataType::of<std::int32_t>());
    EXPECT_EQ(find_ggml_type(30), (DataType{.code = DataCode::bfloat, .bits = 16}));
    EXPECT_EQ(find_ggml_type(12), (DataType{.code = DataCode::ggml_block, .ggml_type = 12}));
}

TEST(GgmlTypes, AreFoundByNumberAndByName) {
    for (std::uint32_t number = 0; number < ggml_type_count(); ++number) {
        const GgmlType& type = *ggml_type(number);
        EXPECT_EQ(find_ggml_type(number), find_ggml_type(type.name)) << type.name;
        EXPECT_EQ(find_ggml_type(number).has_value(), !type.removed()) << type.name;
    }
    EXPECT_FALSE(find_ggml_type(43));
    EXPECT_FALSE(find_ggml_type(4));
    EXPECT_FALSE(find_ggml_type("q4_0"));
    EXPECT_FALSE(find_ggml_type("Q4_2"));
}

}  // namespace
}  // namespace tensorpool::tensors
