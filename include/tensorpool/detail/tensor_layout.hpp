#pragma once

/// @file
/// Shapes and strides of tensors, in elements, in the form that other libraries use.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorpool::detail {

/// Throws std::invalid_argument with `what` and the reason, in the form of all errors about
/// tensors.
[[noreturn]] inline void refuse_tensor(const char* what, const std::string& reason) {
    throw std::invalid_argument("tensorpool: " + std::string(what) + ": " + reason);
}

/// Returns the shape as text for messages, such as "(3, 5)".
inline std::string shape_text(std::span<const std::int64_t> shape) {
    std::string text;
    for (const std::int64_t extent : shape) {
        text += (text.empty() ? "" : ", ") + std::to_string(extent);
    }
    return "(" + text + ")";
}

/// Returns the product of `shape`; 1 for an empty shape. Throws std::invalid_argument, for `what`,
/// if an extent is negative or the elements would not fit into an address space.
inline std::size_t element_count(const char* what, std::span<const std::int64_t> shape,
                                 std::size_t element_bytes) {
    if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; })) {
        refuse_tensor(what, "shape " + shape_text(shape) + ", expected no negative extent");
    }
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    const std::size_t max = std::numeric_limits<std::ptrdiff_t>::max() / element_bytes;
    std::size_t count = 1;
    for (const std::int64_t extent : shape) {
        if (count > max / static_cast<std::size_t>(extent)) {
            refuse_tensor(what, "shape " + shape_text(shape) + ", expected at most " +
                                    std::to_string(max) + " elements");
        }
        count *= static_cast<std::size_t>(extent);
    }
    return count;
}

/// Returns the strides of contiguous elements whose last dimension is the fastest.
inline std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::uint64_t stride = 1;  // may wrap, unused, if an extent of 0 leaves no element
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = static_cast<std::int64_t>(stride);
        stride *= static_cast<std::uint64_t>(shape[i] > 1 ? shape[i] : 1);
    }
    return strides;
}

/// Returns whether `strides` are those of contiguous elements whose last dimension is the fastest.
/// Strides that no element depends on may be anything.
inline bool is_row_major(std::span<const std::int64_t> shape,
                         std::span<const std::int64_t> strides) {
    if (std::ranges::find(shape, 0) != shape.end()) return true;
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        if (shape[i] == 1) continue;
        if (strides[i] != stride) return false;
        stride *= shape[i];
    }
    return true;
}

/// Returns the highest element that `shape` with `strides` reaches, counted from the first, or
/// std::nullopt if an element lies before the first or beyond all memory. Every extent must be 1 or
/// more.
inline std::optional<std::uint64_t> highest_element(std::span<const std::int64_t> shape,
                                                    std::span<const std::int64_t> strides) {
    constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 1) continue;
        if (strides[i] < 0) return std::nullopt;
        const auto steps = static_cast<std::uint64_t>(shape[i] - 1);
        const auto stride = static_cast<std::uint64_t>(strides[i]);
        if (stride > (max - highest) / steps) return std::nullopt;
        highest += steps * stride;
    }
    return highest;
}

}  // namespace tensorpool::detail
