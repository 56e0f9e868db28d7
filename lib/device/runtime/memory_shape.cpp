#include <tensorpool/device/memory_shape.hpp>

#include <stdexcept>

#include "base/alignment.hpp"
#include "device/runtime/check_shape.hpp"

namespace tensorpool {

namespace {

std::size_t bytes_by_type(const MemoryShape& shape) {
    const std::uint64_t bytes = shape.type.block_bytes();
    if (shape.element_bytes != 0 &&
        (shape.type.block_elements() != 1 || shape.element_bytes != bytes)) {
        throw std::invalid_argument("tensorpool: a shape has elements of " +
                                    std::to_string(shape.element_bytes) + " bytes and of type " +
                                    to_string(shape.type) + ", expected 0 or the type's size");
    }
    return static_cast<std::size_t>(
        tensor_bytes(shape.type, std::span<const std::int64_t>(shape.extents)));
}

}  // namespace

std::size_t bytes_of(const MemoryShape& shape) {
    if (shape.type != DataType{}) return bytes_by_type(shape);
    if (shape.element_bytes == 0) {
        throw std::invalid_argument(
            "tensorpool: a shape has elements of 0 bytes, expected 1 or more");
    }
    std::size_t bytes = shape.element_bytes;
    bool fits = true;
    for (const std::int64_t extent : shape.extents) {
        if (extent < 0) {
            throw std::invalid_argument("tensorpool: a shape has the extent " +
                                        std::to_string(extent) + ", expected 0 or more");
        }
        if (extent == 0) return 0;
        fits = fits && base::multiply(bytes, static_cast<std::size_t>(extent), bytes);
    }
    if (!fits) {
        throw std::invalid_argument(
            "tensorpool: a shape needs more bytes than a program can address");
    }
    return bytes;
}

}  // namespace tensorpool

namespace tensorpool::device {

void check_shape(const MemoryShape& shape, std::size_t bytes) {
    if (shape == MemoryShape{}) return;
    const std::size_t needed = bytes_of(shape);
    if (needed <= bytes) return;
    throw std::invalid_argument("tensorpool: a shape needs " + std::to_string(needed) +
                                " bytes, expected at most the " + std::to_string(bytes) +
                                " of the memory");
}

}  // namespace tensorpool::device
