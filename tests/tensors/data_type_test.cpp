#include <tensorpool/data_type.hpp>

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>

namespace tensorpool {
namespace {

static_assert(DataType::of<float>() == DataType{.code = DataCode::floating, .bits = 32});
static_assert(DataType::of<bool>().code == DataCode::boolean);
static_assert(DataType::of<std::complex<double>>() ==
              DataType{.code = DataCode::complex, .bits = 128});
static_assert(DataType::of<const bool>() == DataType::of<bool>());
static_assert(DataType::of<const volatile float>() == DataType::of<float>());
static_assert(DataType::of<const std::complex<float>>() == DataType::of<std::complex<float>>());

TEST(DataType, DefaultIsNoType) {
    const DataType none;
    EXPECT_EQ(none.block_elements(), 0U);
    EXPECT_EQ(none.block_bytes(), 0U);
    EXPECT_EQ(to_string(none), "none");
}

TEST(DataType, BlockFillsWholeBytes) {
    const DataType six_bits = {.code = DataCode::float6_e2m3fn, .bits = 6};
    EXPECT_EQ(six_bits.block_elements(), 4U);
    EXPECT_EQ(six_bits.block_bytes(), 3U);
    const DataType bits = {.code = DataCode::unsigned_integer, .bits = 1};
    EXPECT_EQ(bits.block_elements(), 8U);
    EXPECT_EQ(bits.block_bytes(), 1U);
    const DataType four_floats = {.code = DataCode::floating, .bits = 32, .lanes = 4};
    EXPECT_EQ(four_floats.block_elements(), 1U);
    EXPECT_EQ(four_floats.block_bytes(), 16U);
    const DataType largest = {.bits = UINT16_MAX, .lanes = UINT32_MAX};
    EXPECT_EQ(largest.block_bytes(), std::uint64_t{UINT16_MAX} * UINT32_MAX);
}

TEST(DataType, UnknownNumberOfGgmlHasNoBlock) {
    const DataType unknown = {.code = DataCode::ggml_block, .ggml_type = 200};
    EXPECT_EQ(unknown.block_elements(), 0U);
    EXPECT_EQ(unknown.block_bytes(), 0U);
    EXPECT_EQ(to_string(unknown), "ggml type 200");
    // The number of F32, which is no block type.
    EXPECT_EQ((DataType{.code = DataCode::ggml_block, .ggml_type = 0}.block_bytes()), 0U);
}

TEST(DataType, HasAText) {
    EXPECT_EQ(to_string(DataType::of<float>()), "float32");
    EXPECT_EQ(to_string(DataType::of<std::uint8_t>()), "uint8");
    EXPECT_EQ(to_string(DataType::of<std::complex<float>>()), "complex64");
    EXPECT_EQ(to_string(DataType::of<bool>()), "bool");
    EXPECT_EQ(to_string({.code = DataCode::bfloat, .bits = 16}), "bfloat16");
    EXPECT_EQ(to_string({.bits = 8, .lanes = 12}), "opaque8x12");
    EXPECT_EQ(to_string(*find_safetensors_type("F8_E4M3")), "float8_e4m3fn");
    EXPECT_EQ(to_string(*find_ggml_type("IQ2_XXS")), "IQ2_XXS");
    EXPECT_EQ(to_string({.code = static_cast<DataCode>(99), .bits = 7}), "code 99 of 7");
}

}  // namespace
}  // namespace tensorpool
