#include "tensors/tensor_sizes.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <map>
#include <string>

namespace tensorpool::tensors {
namespace {

TEST(SafetensorsTypes, HaveTheBitsOfTheFormat) {
    const std::map<std::string, unsigned> bits = {
        {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
        {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
        {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
        {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
        {"I64", 64},        {"U64", 64},
    };
    for (const auto& [name, expected] : bits) {
        const SafetensorsType* const type = safetensors_type(name);
        ASSERT_NE(type, nullptr) << name;
        EXPECT_EQ(type->name, name);
        EXPECT_EQ(type->type.block_bytes() * 8, type->type.block_elements() * expected) << name;
    }
}

TEST(SafetensorsTypes, HaveDLPackCodes) {
    EXPECT_EQ(find_safetensors_type("U8"), DataType::of<std::uint8_t>());
    EXPECT_EQ(find_safetensors_type("C64"), DataType::of<std::complex<float>>());
    const std::map<std::string, DataCode> codes = {
        {"BOOL", DataCode::boolean},          {"I64", DataCode::signed_integer},
        {"F16", DataCode::floating},          {"BF16", DataCode::bfloat},
        {"F8_E4M3", DataCode::float8_e4m3fn}, {"F4", DataCode::float4_e2m1fn}};
    for (const auto& [name, code] : codes) EXPECT_EQ(safetensors_type(name)->type.code, code);
}

TEST(SafetensorsTypes, OtherNamesAreUnknown) {
    for (const char* const name : {"", "F", "f32", "F32 ", "I4", "F8", "C128"}) {
        EXPECT_EQ(safetensors_type(name), nullptr) << name;
        EXPECT_FALSE(find_safetensors_type(name)) << name;
    }
}

}  // namespace
}  // namespace tensorpool::tensors
