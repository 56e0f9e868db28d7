#include "files/safetensors/types.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tensorpool::files {
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
        const ElementType* const type = safetensors_type(name);
        ASSERT_NE(type, nullptr) << name;
        EXPECT_EQ(type->name, name);
        EXPECT_EQ(type->block_bytes * 8, type->block_elements * expected) << name;
    }
}

TEST(SafetensorsTypes, HaveDLPackCodes) {
    const std::map<std::string, int> codes = {{"BOOL", 6}, {"U8", 1},  {"I64", 0}, {"F16", 2},
                                              {"BF16", 4}, {"C64", 5}, {"F4", -1}, {"F8_E4M3", -1}};
    for (const auto& [name, code] : codes) {
        EXPECT_EQ(safetensors_type(name)->dlpack_code, code) << name;
    }
}

TEST(SafetensorsTypes, OtherNamesAreUnknown) {
    for (const char* const name : {"", "F", "f32", "F32 ", "I4", "F8", "C128"}) {
        EXPECT_EQ(safetensors_type(name), nullptr) << name;
    }
}

}  // namespace
}  // namespace tensorpool::files
