#include "files/gguf/gguf_types.hpp"

#include <array>
#include <cstddef>

namespace tensorpool::files {
namespace {

constexpr std::int8_t no_code = -1, signed_code = 0, float_code = 2, bfloat_code = 4;

constexpr GgmlType plain(std::string_view name, std::uint32_t bytes, std::int8_t code) {
    return {{name, 1, bytes, code}};
}
constexpr GgmlType blocks(std::string_view name, std::uint32_t elements, std::uint32_t bytes) {
    return {{name, elements, bytes, no_code}};
}
constexpr GgmlType removed(std::string_view name) {
    return {{name, 1, 0, no_code}, true};
}

// Indexed by the numbers of `enum ggml_type` (ggml.h, as of 2026, up to number 42). Sizes are those
// of the block structures in ggml-common.h.
constexpr auto types = std::to_array<GgmlType>({
    plain("F32", 4, float_code),    // 0
    plain("F16", 2, float_code),    //
    blocks("Q4_0", 32, 18),         //
    blocks("Q4_1", 32, 20),         //
    removed("Q4_2"),                //
    removed("Q4_3"),                // 5
    blocks("Q5_0", 32, 22),         //
    blocks("Q5_1", 32, 24),         //
    blocks("Q8_0", 32, 34),         //
    blocks("Q8_1", 32, 36),         //
    blocks("Q2_K", 256, 84),        // 10
    blocks("Q3_K", 256, 110),       //
    blocks("Q4_K", 256, 144),       //
    blocks("Q5_K", 256, 176),       //
    blocks("Q6_K", 256, 210),       //
    blocks("Q8_K", 256, 292),       // 15
    blocks("IQ2_XXS", 256, 66),     //
    blocks("IQ2_XS", 256, 74),      //
    blocks("IQ3_XXS", 256, 98),     //
    blocks("IQ1_S", 256, 50),       //
    blocks("IQ4_NL", 32, 18),       // 20
    blocks("IQ3_S", 256, 110),      //
    blocks("IQ2_S", 256, 82),       //
    blocks("IQ4_XS", 256, 136),     //
    plain("I8", 1, signed_code),    //
    plain("I16", 2, signed_code),   // 25
    plain("I32", 4, signed_code),   //
    plain("I64", 8, signed_code),   //
    plain("F64", 8, float_code),    //
    blocks("IQ1_M", 256, 56),       //
    plain("BF16", 2, bfloat_code),  // 30
    removed("Q4_0_4_4"),            //
    removed("Q4_0_4_8"),            //
    removed("Q4_0_8_8"),            //
    blocks("TQ1_0", 256, 54),       //
    blocks("TQ2_0", 256, 66),       // 35
    removed("IQ4_NL_4_4"),          //
    removed("IQ4_NL_4_8"),          //
    removed("IQ4_NL_8_8"),          //
    blocks("MXFP4", 32, 17),        //
    blocks("NVFP4", 64, 36),        // 40
    blocks("Q1_0", 128, 18),        //
    blocks("Q2_0", 64, 18),         //
});

// Indexed by their numbers, from ggml's docs/gguf.md.
constexpr auto value_types = std::to_array<GgufValueType>({
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
});
static_assert(value_types.size() == gguf_value_types);

}  // namespace

const GgmlType* ggml_type(std::uint32_t number) noexcept {
    return number < types.size() ? &types[number] : nullptr;
}

std::uint32_t ggml_type_count() noexcept {
    return types.size();
}

const GgufValueType& gguf_value_type(GgufValue type) noexcept {
    return value_types[static_cast<std::size_t>(type)];
}

}  // namespace tensorpool::files
