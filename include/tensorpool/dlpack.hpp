#pragma once

/// @file
/// DLPack, by which NumPy, PyTorch, JAX, TVM and others hand tensors to each other without a copy:
/// blocks of a pool for them, and tensors of theirs. Needs DLPack's header, which the library does
/// not.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dlpack/dlpack.h>

#include <tensorpool/detail/tensor_layout.hpp>
#include <tensorpool/dlpack_tensor.hpp>
#include <tensorpool/dlpack_type.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/pooled_array.hpp>

namespace tensorpool {

namespace detail {

/// What a tensor in other hands keeps alive.
template <class Block>
struct DlpackRecord {
    Block block;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    DLManagedTensor tensor;

    static void destroy(DLManagedTensor* tensor) noexcept {
        delete static_cast<DlpackRecord*>(tensor->manager_ctx);
    }
};

/// Throws std::invalid_argument unless `held` elements are what shape and strides reach.
inline void check_reach(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                        std::size_t held, std::size_t element_bytes) {
    const std::size_t count = element_count("to_dlpack", shape, element_bytes);
    const std::string found = std::to_string(held) + " elements";
    if (strides.empty()) {
        if (count == held) return;
        refuse_tensor("to_dlpack", found + ", expected the " + std::to_string(count) +
                                       " of shape " + shape_text(shape));
    }
    if (strides.size() != shape.size()) {
        refuse_tensor("to_dlpack", std::to_string(strides.size()) + " strides, expected " +
                                       std::to_string(shape.size()) + " as of shape " +
                                       shape_text(shape));
    }
    if (count == 0) return;
    const auto highest = highest_element(shape, strides);
    if (highest && *highest < held) return;
    refuse_tensor("to_dlpack", "strides " + shape_text(strides) + " of shape " + shape_text(shape) +
                                   ", expected to stay within the " + found);
}

template <class T, class Block>
DLManagedTensor* to_dlpack(Block& block, T* data, std::size_t held, std::vector<std::int64_t> shape,
                           std::vector<std::int64_t> strides) {
    check_reach(shape, strides, held, sizeof(T));
    if (strides.empty()) strides = row_major_strides(shape);
    auto* const record =
        new DlpackRecord<Block>{std::move(block), std::move(shape), std::move(strides), {}};
    record->tensor.dl_tensor = {.data = data,
                                .device = {kDLCPU, 0},
                                .ndim = static_cast<int>(record->shape.size()),
                                .dtype = DlpackType<T>::value,
                                .shape = record->shape.data(),
                                .strides = record->strides.data(),
                                .byte_offset = 0};
    record->tensor.manager_ctx = record;
    record->tensor.deleter = DlpackRecord<Block>::destroy;
    return &record->tensor;
}

}  // namespace detail

/// The elements of `array` as a tensor of `shape`, for a library that takes DLPack. Whoever takes
/// it calls its deleter once, from any thread, and that gives the block back to its pool, which
/// must live until then. `strides`, in elements, may tell another order than the compact one of no
/// strides: 0 or more each, and no element beyond the array.
///
/// Throws std::invalid_argument where shape and strides do not fit the array, std::bad_alloc for
/// the tensor's record, which comes from `new`; `array` then keeps its elements. They begin at a
/// multiple of 64 bytes, not the 256 that dlpack.h speaks of and that no library asks for: one that
/// does needs a PooledAllocation of that alignment.
template <DlpackElement T>
[[nodiscard]] DLManagedTensor* to_dlpack(PooledArray<T>&& array, std::vector<std::int64_t> shape,
                                         std::vector<std::int64_t> strides = {}) {
    return detail::to_dlpack<T>(array, array.data(), array.size(), std::move(shape),
                                std::move(strides));
}
/// As above, of one dimension.
template <DlpackElement T>
[[nodiscard]] DLManagedTensor* to_dlpack(PooledArray<T>&& array) {
    const auto count = static_cast<std::int64_t>(array.size());
    return to_dlpack(std::move(array), {count});
}
/// As above, of a block that holds elements T.
template <DlpackElement T>
[[nodiscard]] DLManagedTensor* to_dlpack(PooledAllocation&& block, std::vector<std::int64_t> shape,
                                         std::vector<std::int64_t> strides = {}) {
    const std::span<T> elements = block.as<T>();
    return detail::to_dlpack<T>(block, elements.data(), elements.size(), std::move(shape),
                                std::move(strides));
}

/// Takes a tensor that another library made, as DlpackTensor's constructor: where that throws
/// std::invalid_argument the caller still has it. A `const T` only reads: DLPack 0.6 does not tell
/// whether a tensor may be written to.
template <class T>
[[nodiscard]] DlpackTensor<T> from_dlpack(DLManagedTensor* tensor) {
    return DlpackTensor<T>(tensor);
}

}  // namespace tensorpool
