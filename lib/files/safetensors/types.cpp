#include "files/safetensors/types.hpp"

#include <algorithm>
#include <array>

namespace tensorpool::files {
namespace {

constexpr std::int8_t no_code = -1, signed_code = 0, unsigned_code = 1, float_code = 2,
                      bfloat_code = 4, complex_code = 5, bool_code = 6;

// Names of the format's own library (huggingface/safetensors, safetensors/src/tensor.rs, 2026). The
// number of elements of types below a byte must fill whole bytes: 2 of 4 bits, 4 of 6 bits.
constexpr auto types = std::to_array<ElementType>({
    {"F32", 1, 4, float_code},      {"F16", 1, 2, float_code},    {"BF16", 1, 2, bfloat_code},
    {"F64", 1, 8, float_code},      {"BOOL", 1, 1, bool_code},    {"U8", 1, 1, unsigned_code},
    {"I8", 1, 1, signed_code},      {"U16", 1, 2, unsigned_code}, {"I16", 1, 2, signed_code},
    {"U32", 1, 4, unsigned_code},   {"I32", 1, 4, signed_code},   {"U64", 1, 8, unsigned_code},
    {"I64", 1, 8, signed_code},     {"C64", 1, 8, complex_code},  {"F8_E5M2", 1, 1, no_code},
    {"F8_E4M3", 1, 1, no_code},     {"F8_E8M0", 1, 1, no_code},   {"F8_E4M3FNUZ", 1, 1, no_code},
    {"F8_E5M2FNUZ", 1, 1, no_code}, {"F6_E2M3", 4, 3, no_code},   {"F6_E3M2", 4, 3, no_code},
    {"F4", 2, 1, no_code},
});

}  // namespace

const ElementType* safetensors_type(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(types, name, &ElementType::name);
    return found == types.end() ? nullptr : found;
}

}  // namespace tensorpool::files
