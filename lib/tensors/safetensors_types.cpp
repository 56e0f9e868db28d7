#include "tensors/safetensors_types.hpp"

#include <algorithm>
#include <array>

namespace tensorpool {
namespace tensors {
namespace {

constexpr SafetensorsType named(std::string_view name, DataCode code, std::uint16_t bits) {
    return {name, {.code = code, .bits = bits}};
}

// Names of the format's own library (huggingface/safetensors, safetensors/src/tensor.rs, 2026).
constexpr auto types = std::to_array<SafetensorsType>({
    named("F32", DataCode::floating, 32),
    named("F16", DataCode::floating, 16),
    named("BF16", DataCode::bfloat, 16),
    named("F64", DataCode::floating, 64),
    named("BOOL", DataCode::boolean, 8),
    named("U8", DataCode::unsigned_integer, 8),
    named("I8", DataCode::signed_integer, 8),
    named("U16", DataCode::unsigned_integer, 16),
    named("I16", DataCode::signed_integer, 16),
    named("U32", DataCode::unsigned_integer, 32),
    named("I32", DataCode::signed_integer, 32),
    named("U64", DataCode::unsigned_integer, 64),
    named("I64", DataCode::signed_integer, 64),
    named("C64", DataCode::complex, 64),
    named("F8_E5M2", DataCode::float8_e5m2, 8),
    named("F8_E4M3", DataCode::float8_e4m3fn, 8),
    named("F8_E8M0", DataCode::float8_e8m0fnu, 8),
    named("F8_E4M3FNUZ", DataCode::float8_e4m3fnuz, 8),
    named("F8_E5M2FNUZ", DataCode::float8_e5m2fnuz, 8),
    named("F6_E2M3", DataCode::float6_e2m3fn, 6),
    named("F6_E3M2", DataCode::float6_e3m2fn, 6),
    named("F4", DataCode::float4_e2m1fn, 4),
});

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(types, name, &SafetensorsType::name);
    return found == types.end() ? nullptr : found;
}

}  // namespace tensors

std::optional<DataType> find_safetensors_type(std::string_view name) noexcept {
    const tensors::SafetensorsType* const found = tensors::safetensors_type(name);
    return found == nullptr ? std::nullopt : std::optional(found->type);
}

}  // namespace tensorpool
