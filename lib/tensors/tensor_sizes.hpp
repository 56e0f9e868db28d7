#pragma once

#include <tensorpool/data_type.hpp>

namespace tensorpool::tensors {

/// Returns the product of the dimensions. Returns nothing if the product, with zeros left out,
/// exceeds 2^63 - 1: strides are signed everywhere.
std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> shape) noexcept;

/// Returns the bytes of `elements` elements; nothing if they exceed 2^63 - 1. REQUIRES: `elements`
/// is a multiple of the type's block, which has elements.
std::optional<std::uint64_t> count_bytes(std::uint64_t elements, const DataType& type) noexcept;

/// A type of safetensors. Its name is valid for ever.
struct SafetensorsType {
    std::string_view name;
    DataType type;
};

/// Returns the type of this name, or nullptr if the format does not have it.
const SafetensorsType* safetensors_type(std::string_view name) noexcept;

/// A tensor type of ggml.
struct GgmlType {
    std::string_view name;
    DataType type;                     ///< no type if ggml has removed it
    std::uint16_t block_elements = 0;  ///< for a block type
    std::uint16_t block_bytes = 0;
    bool removed() const noexcept { return type == DataType{}; }
};

/// Returns the type with this number, or nullptr if ggml has not assigned it. A type that ggml has
/// removed keeps its number and its name.
const GgmlType* ggml_type(std::uint32_t number) noexcept;
/// Returns how many numbers ggml has assigned.
std::uint32_t ggml_type_count() noexcept;

}  // namespace tensorpool::tensors
