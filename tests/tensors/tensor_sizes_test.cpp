#include "tensors/tensor_sizes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorpool {
namespace {

using tensors::count_bytes;
using tensors::count_elements;
using Shape = std::vector<std::uint64_t>;
constexpr std::uint64_t max_count = (std::uint64_t{1} << 63) - 1;

template <class Call>
std::string refusal_of(Call call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(CountElements, IsTheProduct) {
    EXPECT_EQ(count_elements({}), 1U);
    EXPECT_EQ(count_elements(Shape{3, 4, 5}), 60U);
    EXPECT_EQ(count_elements(Shape{3, 0, 5}), 0U);
    EXPECT_EQ(count_elements(Shape{max_count}), max_count);
    EXPECT_EQ(count_elements(Shape{max_count, 1}), max_count);
}

TEST(CountElements, FailsAbove63Bits) {
    EXPECT_FALSE(count_elements(Shape{max_count + 1}));
    EXPECT_FALSE(count_elements(Shape{max_count, 2}));
    EXPECT_FALSE(count_elements(Shape{max_count, max_count}));
    EXPECT_FALSE(count_elements(Shape{std::uint64_t{1} << 32, std::uint64_t{1} << 32, 0}));
}

TEST(CountBytes, CountsWholeBlocks) {
    const DataType q4 = *find_ggml_type("Q4_0");
    const DataType f32 = DataType::of<float>();
    EXPECT_EQ(count_bytes(64, q4), 36U);
    EXPECT_EQ(count_bytes(0, q4), 0U);
    EXPECT_FALSE(count_bytes(max_count, f32));
    EXPECT_EQ(count_bytes(max_count / 4, f32), max_count / 4 * 4);
}

TEST(RowBytes, CountsWholeBlocks) {
    EXPECT_EQ(row_bytes(DataType::of<float>(), 10), 40U);
    EXPECT_EQ(row_bytes(*find_ggml_type("Q4_K"), 4096), 4096U / 256 * 144);
    EXPECT_EQ(row_bytes(*find_safetensors_type("F6_E2M3"), 8), 6U);
    EXPECT_EQ(row_bytes(*find_numpy_type("<U3"), 5), 60U);
    EXPECT_EQ(row_bytes(*find_ggml_type("Q4_K"), 0), 0U);
}

TEST(RowBytes, RefusalsNameWhatWasExpected) {
    EXPECT_EQ(
        refusal_of([] { (void)row_bytes(*find_ggml_type("Q4_0"), 33); }),
        "tensorpool: row_bytes: 33 elements of type Q4_0, expected a multiple of 32, which is "
        "a block");
    EXPECT_EQ(refusal_of([] { (void)row_bytes({}, 1); }),
              "tensorpool: row_bytes: 1 elements of type none, expected a type with bytes");
    EXPECT_EQ(refusal_of([] { (void)row_bytes(DataType::of<double>(), max_count); }),
              "tensorpool: row_bytes: " + std::to_string(max_count) +
                  " elements of type float64, expected at most 2^63 - 1 elements and bytes");
    EXPECT_NE(
        refusal_of([] { (void)row_bytes({.code = DataCode::ggml_block, .ggml_type = 4}, 256); }),
        "")
        << "ggml has removed this type";
}

TEST(TensorBytes, MultipliesTheExtents) {
    EXPECT_EQ(tensor_bytes(DataType::of<std::int16_t>(), {2, 3, 5}), 60U);
    EXPECT_EQ(tensor_bytes(DataType::of<std::int16_t>(), Shape{}), 2U);
    EXPECT_EQ(tensor_bytes(DataType::of<std::int16_t>(), {7, 0}), 0U);
    EXPECT_EQ(tensor_bytes(*find_ggml_type("Q8_0"), {3, 64}), 3U * 2 * 34);
    const std::vector<std::int64_t> signed_shape = {4, 8};
    EXPECT_EQ(tensor_bytes(DataType::of<float>(), signed_shape), 128U);
}

TEST(TensorBytes, BlocksOfGgmlMustFillRowsAndOthersTheTensor) {
    EXPECT_EQ(tensor_bytes(*find_safetensors_type("F4"), {2, 3}), 3U);
    EXPECT_EQ(
        refusal_of([] {
            (void)tensor_bytes(*find_safetensors_type("F4"), {3, 3});
        }),
        "tensorpool: tensor_bytes: 9 elements of type float4_e2m1fn, expected a multiple of 2, "
        "which is a block");
    EXPECT_EQ(refusal_of([] {
                  (void)tensor_bytes(*find_ggml_type("Q4_0"), {32, 16});
              }),
              "tensorpool: tensor_bytes: rows of 16 elements of type Q4_0, expected a multiple of "
              "32, which is a block");
}

TEST(TensorBytes, RefusesNegativeAndHugeExtents) {
    const std::vector<std::int64_t> negative = {2, -1};
    EXPECT_NE(refusal_of([&] {
                  (void)tensor_bytes(DataType::of<float>(), negative);
              }).find("the extent -1"),
              std::string::npos);
    EXPECT_EQ(refusal_of([] {
                  (void)tensor_bytes(DataType::of<float>(), {max_count, 2});
              }),
              "tensorpool: tensor_bytes: shape (" + std::to_string(max_count) +
                  ", 2) of type float32, expected at most 2^63 - 1 elements and bytes");
}

}  // namespace
}  // namespace tensorpool
