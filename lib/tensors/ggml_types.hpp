#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/data_type.hpp>

namespace tensorpool::tensors {

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
