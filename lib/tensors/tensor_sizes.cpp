#include "tensors/tensor_sizes.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

namespace tensorpool {
namespace tensors {
namespace {

constexpr auto max_count = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::optional<std::uint64_t> product(std::uint64_t one, std::uint64_t other) noexcept {
    if (other != 0 && one > max_count / other) return std::nullopt;
    return one * other;
}

}  // namespace

std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> shape) noexcept {
    std::uint64_t elements = 1;
    bool empty = false;
    for (const std::uint64_t dimension : shape) {
        empty = empty || dimension == 0;
        const auto more = product(elements, std::max<std::uint64_t>(dimension, 1));
        if (!more) return std::nullopt;
        elements = *more;
    }
    return empty ? 0 : elements;
}

std::optional<std::uint64_t> count_bytes(std::uint64_t elements, const DataType& type) noexcept {
    return product(elements / type.block_elements(), type.block_bytes());
}

}  // namespace tensors

namespace {

[[noreturn]] void refuse(const char* call, const std::string& found, const DataType& type,
                         const std::string& expected) {
    throw std::invalid_argument("tensorpool: " + std::string(call) + ": " + found + " of type " +
                                to_string(type) + ", expected " + expected);
}

std::string text_of(std::span<const std::uint64_t> shape) {
    std::string text;
    for (const std::uint64_t extent : shape) {
        text += (text.empty() ? "" : ", ") + std::to_string(extent);
    }
    return "(" + text + ")";
}

constexpr const char* size_limit = "at most 2^63 - 1 elements and bytes";

void check_blocks(const char* call, const DataType& type, const char* what,
                  std::uint64_t elements) {
    const std::string found = what + std::to_string(elements) + " elements";
    const std::uint64_t block = type.block_elements();
    if (block == 0) refuse(call, found, type, "a type with bytes");
    if (elements % block != 0) {
        refuse(call, found, type, "a multiple of " + std::to_string(block) + ", which is a block");
    }
}

}  // namespace

std::uint64_t row_bytes(const DataType& type, std::uint64_t elements) {
    check_blocks("row_bytes", type, "", elements);
    const auto bytes = tensors::count_bytes(elements, type);
    if (!bytes) refuse("row_bytes", std::to_string(elements) + " elements", type, size_limit);
    return *bytes;
}

std::uint64_t tensor_bytes(const DataType& type, std::span<const std::uint64_t> shape) {
    constexpr const char* call = "tensor_bytes";
    const bool by_row = type.code == DataCode::ggml_block;
    if (by_row) check_blocks(call, type, "rows of ", shape.empty() ? 1 : shape.back());
    const auto elements = tensors::count_elements(shape);
    if (!elements) refuse(call, "shape " + text_of(shape), type, size_limit);
    if (!by_row) check_blocks(call, type, "", *elements);
    const auto bytes = tensors::count_bytes(*elements, type);
    if (!bytes) refuse(call, "shape " + text_of(shape), type, size_limit);
    return *bytes;
}

std::uint64_t tensor_bytes(const DataType& type, std::span<const std::int64_t> shape) {
    std::vector<std::uint64_t> extents;
    extents.reserve(shape.size());
    for (const std::int64_t extent : shape) {
        if (extent < 0) {
            throw std::invalid_argument("tensorpool: tensor_bytes: the extent " +
                                        std::to_string(extent) + ", expected 0 or more");
        }
        extents.push_back(static_cast<std::uint64_t>(extent));
    }
    return tensor_bytes(type, std::span<const std::uint64_t>(extents));
}

}  // namespace tensorpool
