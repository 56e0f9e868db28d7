#include <tensorpool/data_type.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "tensors/tensor_sizes.hpp"

namespace tensorpool {
namespace {

/// Indexed by DataCode.
constexpr std::string_view names[] = {
    "int",
    "uint",
    "float",
    "opaque",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
};
static_assert(std::size(names) == static_cast<std::size_t>(DataCode::float4_e2m1fn) + 1);

std::uint64_t element_bits(const DataType& type) noexcept {
    return std::uint64_t{type.bits} * type.lanes;
}

const tensors::GgmlType* block_type(const DataType& type) noexcept {
    if (type.code != DataCode::ggml_block) return nullptr;
    const tensors::GgmlType* const found = tensors::ggml_type(type.ggml_type);
    return found != nullptr && found->type == type ? found : nullptr;
}

}  // namespace

std::uint64_t DataType::block_elements() const noexcept {
    if (code == DataCode::ggml_block) {
        const tensors::GgmlType* const found = block_type(*this);
        return found == nullptr ? 0 : found->block_elements;
    }
    const std::uint64_t bits_of_all = element_bits(*this);
    return bits_of_all == 0 ? 0 : 8 / std::gcd(bits_of_all, std::uint64_t{8});
}

std::uint64_t DataType::block_bytes() const noexcept {
    if (code == DataCode::ggml_block) {
        const tensors::GgmlType* const found = block_type(*this);
        return found == nullptr ? 0 : found->block_bytes;
    }
    // In this order, or the product of the largest values would not fit.
    const std::uint64_t bits_of_all = element_bits(*this);
    return bits_of_all / std::gcd(bits_of_all, std::uint64_t{8});
}

std::string to_string(const DataType& type) {
    if (type.code == DataCode::ggml_block) {
        const tensors::GgmlType* const found = block_type(type);
        return found != nullptr ? std::string(found->name)
                                : "ggml type " + std::to_string(type.ggml_type);
    }
    if (element_bits(type) == 0) return "none";
    const auto code = static_cast<std::size_t>(type.code);
    std::string text = code < std::size(names) ? std::string(names[code])
                                               : "code " + std::to_string(code) + " of ";
    // The names of other types contain their bits.
    if (type.code < DataCode::boolean || code >= std::size(names))
        text += std::to_string(type.bits);
    if (type.lanes != 1) text.append("x").append(std::to_string(type.lanes));
    return text;
}

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
