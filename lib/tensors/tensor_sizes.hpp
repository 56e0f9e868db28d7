#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <tensorpool/data_type.hpp>

namespace tensorpool::tensors {

/// Returns the product of the dimensions. Returns nothing if the product, with zeros left out,
/// exceeds 2^63 - 1: strides are signed everywhere.
std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> shape) noexcept;

/// Returns the bytes of `elements` elements; nothing if they exceed 2^63 - 1. REQUIRES: `elements`
/// is a multiple of the type's block, which has elements.
std::optional<std::uint64_t> count_bytes(std::uint64_t elements, const DataType& type) noexcept;

}  // namespace tensorpool::tensors
