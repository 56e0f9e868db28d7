#pragma once

/// @file
/// Exchange of tensors with NumPy, PyTorch, JAX, TVM and others by DLPack, without a copy: it
/// exports blocks of a pool or another source and imports tensors of other libraries. This header
/// needs DLPack's header; the library does not.

#include <tensorpool/dlpack_tensor.hpp>
#include <tensorpool/pooled_array.hpp>
#include <tensorpool/tensor_allocation.hpp>

namespace tensorpool {

namespace detail {

/// The objects that an exported tensor keeps alive.
template <class Block>
struct DlpackRecord {
    Block block;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    DLManagedTensor tensor;
};

/// Returns a tensor that keeps `block` alive until its deleter is called. Throws std::bad_alloc,
/// and then leaves the block to the caller.
template <class Block>
DLManagedTensor* dlpack_tensor(Block&& block, void* data, DLDevice device, DLDataType type,
                               std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
    using Record = DlpackRecord<Block>;
    auto* const record = new Record{std::move(block), std::move(shape), std::move(strides), {}};
    record->tensor.dl_tensor = {.data = data,
                                .device = device,
                                .ndim = static_cast<int>(record->shape.size()),
                                .dtype = type,
                                .shape = record->shape.data(),
                                .strides = record->strides.data(),
                                .byte_offset = 0};
    record->tensor.manager_ctx = record;
    record->tensor.deleter = [](DLManagedTensor* tensor) {
        delete static_cast<Record*>(tensor->manager_ctx);
    };
    return &record->tensor;
}

inline DLDevice dlpack_device(const SourceDevice& device) noexcept {
    return {static_cast<DLDeviceType>(device.type), device.index};
}

/// Throws std::invalid_argument if shape and strides reach beyond `held` elements.
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

/// Exports `block`, whose memory is that of `memory`. The address is the one that the device uses.
template <class T, class Block>
DLManagedTensor* to_dlpack(Block& block, const PooledAllocation& memory, std::size_t held,
                           std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
    check_reach(shape, strides, held, sizeof(T));
    if (strides.empty()) strides = row_major_strides(shape);
    void* const data = memory.get();
    const DLDevice device = dlpack_device(memory.device());
    return dlpack_tensor(std::move(block), data, device, DlpackType<T>::value, std::move(shape),
                         std::move(strides));
}

inline DLManagedTensor* to_dlpack(TensorAllocation&& tensor) {
    const DataType type = tensor.type();
    if (type.code == DataCode::ggml_block || type.bits > UINT8_MAX || type.lanes > UINT16_MAX) {
        refuse_tensor("to_dlpack",
                      "a tensor of " + to_string(type) + ", expected a type of DLPack");
    }
    std::vector<std::int64_t> shape = tensor.shape();
    std::vector<std::int64_t> strides = row_major_strides(shape);
    void* const data = tensor.get();
    const DLDevice device = dlpack_device(tensor.device());
    return dlpack_tensor(std::move(tensor), data, device, dlpack_type(type), std::move(shape),
                         std::move(strides));
}

}  // namespace detail

/// Exports the elements of `array` as a tensor of `shape`, for a library that accepts DLPack.
///
/// The receiver calls the tensor's deleter once, from any thread, which ends the block as its
/// source does (PooledAllocation). The source must outlive it. `strides`, in elements, describe a
/// layout other than the compact one; each must be 0 or more, and no element may lie beyond the
/// array.
///
/// Throws std::invalid_argument if shape and strides do not fit the array, and std::bad_alloc if
/// there is no memory for the tensor's record, which comes from `new`; `array` then keeps its
/// elements. The elements begin at a multiple of 64 bytes, not of the 256 that dlpack.h mentions
/// and no known library requires. Use a PooledAllocation of that alignment for one that does.
template <DlpackElement T>
[[nodiscard]] DLManagedTensor* to_dlpack(PooledArray<T>&& array, std::vector<std::int64_t> shape,
                                         std::vector<std::int64_t> strides = {}) {
    return detail::to_dlpack<T>(array, array.allocation(), array.size(), std::move(shape),
                                std::move(strides));
}
/// Exports the elements of `array` as a tensor of one dimension, for a library that accepts DLPack.
///
/// The receiver calls the tensor's deleter once, from any thread, which ends the block as its
/// source does (PooledAllocation). The source must outlive it. Throws std::bad_alloc if there is no
/// memory for the tensor's record; `array` then keeps its elements.
template <DlpackElement T>
[[nodiscard]] DLManagedTensor* to_dlpack(PooledArray<T>&& array) {
    const auto count = static_cast<std::int64_t>(array.size());
    return to_dlpack(std::move(array), {count});
}
/// Exports a block that holds elements T as a tensor of `shape`, for a library that accepts DLPack.
///
/// The tensor is on the device that the block's source names: the CPU, or that of a device
/// allocator. The receiver calls the tensor's deleter once, from any thread, which ends the block
/// as its source does (PooledAllocation). The source must outlive it. `strides`, in elements,
/// describe a layout other than the compact one; each must be 0 or more, and no element may lie
/// beyond the block. Throws std::invalid_argument if shape and strides do not fit the block, and
/// std::bad_alloc if there is no memory for the tensor's record; `block` then keeps its elements.
template <DlpackElement T>
[[nodiscard]] DLManagedTensor* to_dlpack(PooledAllocation&& block, std::vector<std::int64_t> shape,
                                         std::vector<std::int64_t> strides = {}) {
    return detail::to_dlpack<T>(block, block, block.size() / sizeof(T), std::move(shape),
                                std::move(strides));
}

/// Exports a tensor with its shape and type, for a library that accepts DLPack.
///
/// The tensor is on the device of its memory. The receiver calls its deleter once, from any thread,
/// which ends the memory as its source does (PooledAllocation). The source must outlive it. Throws
/// std::invalid_argument for a block type of ggml, which DLPack does not have, and std::bad_alloc
/// if there is no memory for the tensor's record; `tensor` then keeps its elements.
[[nodiscard]] inline DLManagedTensor* to_dlpack(TensorAllocation&& tensor) {
    return detail::to_dlpack(std::move(tensor));
}

/// Takes ownership of a tensor that another library made.
///
/// Throws std::invalid_argument, and leaves the tensor to the caller, if it is nullptr, is on
/// another device than the CPU, or has elements of another type, an invalid shape, or an address
/// that is not aligned for T. With `const T` the elements can only be read. DLPack 0.6 does not say
/// whether a tensor may be written.
template <class T>
[[nodiscard]] DlpackTensor<T> from_dlpack(DLManagedTensor* tensor) {
    return DlpackTensor<T>(tensor);
}

}  // namespace tensorpool
