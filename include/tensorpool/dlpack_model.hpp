#pragma once

/// @file
/// Export of a model file's tensors by DLPack, as views into its mapping, without a copy. This
/// header needs DLPack's header; the library does not.

#include <tensorpool/dlpack.hpp>
#include <tensorpool/model_file.hpp>

namespace tensorpool {

/// Returns whether DLPack has a type for such elements. It has none for elements in blocks, such as
/// quantised weights.
[[nodiscard]] inline bool has_dlpack_type(const ElementType& type) noexcept {
    // Numbers below 16 bits that are no integers came with DLPack 1.1.
    return type.data.code <= DataCode::boolean && type.data.code != DataCode::opaque &&
           type.data.block_elements() == 1 && type.data.bits <= 128;
}

namespace detail {

[[noreturn]] inline void refuse_view(const ModelTensor& tensor, const std::string& reason) {
    refuse_tensor("to_dlpack", "tensor '" + std::string(tensor.name) + "': " + reason);
}

inline std::vector<std::int64_t> dlpack_shape(const ModelTensor& tensor) {
    constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::vector<std::int64_t> shape;
    shape.reserve(tensor.shape.size());
    for (const std::uint64_t extent : tensor.shape) {
        if (extent > max) {
            refuse_view(tensor, "an extent of " + std::to_string(extent) + ", expected at most " +
                                    std::to_string(max));
        }
        shape.push_back(static_cast<std::int64_t>(extent));
    }
    return shape;
}

/// Returns the strides of a compact tensor, in elements.
inline std::vector<std::int64_t> dlpack_strides(std::vector<std::int64_t> shape,
                                                bool column_major) {
    if (!column_major) return row_major_strides(shape);
    std::ranges::reverse(shape);
    std::vector<std::int64_t> strides = row_major_strides(shape);
    std::ranges::reverse(strides);
    return strides;
}

/// Returns a view of `bytes` that keeps the model alive until its deleter is called.
inline DLManagedTensor* view_of(std::shared_ptr<const ModelFile> model,
                                std::span<const std::byte> bytes, DLDataType type,
                                std::vector<std::int64_t> shape,
                                std::vector<std::int64_t> strides) {
    void* const data = const_cast<std::byte*>(bytes.data());
    return dlpack_tensor(std::move(model), data, {kDLCPU, 0}, type, std::move(shape),
                         std::move(strides));
}

inline void check_model(const std::shared_ptr<const ModelFile>& model) {
    if (model == nullptr) refuse_tensor("to_dlpack", "nullptr, expected a ModelFile");
}

/// Returns the alignment of such elements, in bytes.
inline std::size_t alignment_of(const ElementType& type) {
    const std::uint64_t bytes = type.data.block_bytes();
    return std::max<std::size_t>(type.data.code == DataCode::complex ? bytes / 2 : bytes, 1);
}

/// Returns how many bytes the elements lie past a multiple of their alignment.
inline std::size_t misalignment(std::span<const std::byte> bytes, const ElementType& type) {
    return bytes.empty() ? 0 : reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment_of(type);
}

/// Throws std::invalid_argument if DLPack cannot describe the tensor.
inline void check_view(const ModelTensor& tensor, std::span<const std::byte> bytes) {
    if (!has_dlpack_type(tensor.type)) {
        refuse_view(tensor, "elements of type " + std::string(tensor.type.name) +
                                ", expected one that DLPack has");
    }
    const std::size_t past = misalignment(bytes, tensor.type);
    if (past == 0) return;
    refuse_view(tensor, "its bytes begin " + std::to_string(past) + " past a multiple of " +
                            std::to_string(alignment_of(tensor.type)) +
                            ", expected a multiple: copy them");
}

}  // namespace detail

/// Returns whether `to_dlpack` accepts the tensor: DLPack has its type, and its elements are
/// aligned for that type, which formats do not guarantee.
[[nodiscard]] inline bool has_dlpack_view(const ModelFile& model,
                                          const ModelTensor& tensor) noexcept {
    return has_dlpack_type(tensor.type) &&
           detail::misalignment(model.bytes(tensor), tensor.type) == 0;
}

/// Exports a tensor of `model` as it lies in the mapping, for a library that accepts DLPack.
///
/// The view keeps the model alive until the receiver calls the deleter, once, from any thread. It
/// must not be written to: the mapping is read-only, which DLPack 0.6 cannot express. While the
/// view exists, its bytes must not be unmapped (MappedFile::unmap); for a model made by
/// ModelFile::read, the bytes must stay in place.
///
/// Throws std::invalid_argument, naming the tensor and the reason, for a tensor without a view
/// (`bytes_to_dlpack` accepts every tensor), and std::bad_alloc if there is no memory for the
/// view's record, which comes from `new`. `bool` has the code 6 that DLPack defines since 0.8.
[[nodiscard]] inline DLManagedTensor* to_dlpack(std::shared_ptr<const ModelFile> model,
                                                const ModelTensor& tensor) {
    detail::check_model(model);
    const std::span<const std::byte> bytes = model->bytes(tensor);
    detail::check_view(tensor, bytes);
    const DLDataType type = dlpack_type(tensor.type.data);
    std::vector<std::int64_t> shape = detail::dlpack_shape(tensor);
    std::vector<std::int64_t> strides = detail::dlpack_strides(shape, tensor.column_major);
    return detail::view_of(std::move(model), bytes, type, std::move(shape), std::move(strides));
}

/// Exports the bytes of any tensor of `model` as the file has them, as a tensor of bytes of one
/// dimension.
///
/// The view keeps the model alive until the receiver calls the deleter, once, from any thread. It
/// must not be written to, and its bytes must not be unmapped while it exists. Throws
/// std::bad_alloc if there is no memory for the view's record.
[[nodiscard]] inline DLManagedTensor* bytes_to_dlpack(std::shared_ptr<const ModelFile> model,
                                                      const ModelTensor& tensor) {
    detail::check_model(model);
    const std::span<const std::byte> bytes = model->bytes(tensor);
    return detail::view_of(std::move(model), bytes, {kDLUInt, 8, 1},
                           {static_cast<std::int64_t>(bytes.size())}, {1});
}

}  // namespace tensorpool
