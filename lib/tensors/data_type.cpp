#include <tensorpool/data_type.hpp>

#include <iterator>
#include <numeric>

#include "tensors/ggml_types.hpp"

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

}  // namespace tensorpool
