#pragma once

/// @file
/// A tensor that another library passed by DLPack.

#include <memory>
#include <utility>

#include <tensorpool/detail/tensor_layout.hpp>
#include <tensorpool/dlpack_type.hpp>

namespace tensorpool {

/// Owns a DLManagedTensor whose elements are T, or are read as const T, and calls its deleter when
/// destroyed.
///
/// Move-only. One thread at a time may use it. Whether other threads may access the elements is up
/// to the library that made them.
template <class T>
requires DlpackElement<std::remove_const_t<T>>
class DlpackTensor {
public:
    /// Makes an object that owns no tensor.
    DlpackTensor() noexcept = default;
    /// Takes ownership of `tensor`.
    ///
    /// Throws std::invalid_argument, and leaves the tensor to the caller, if it is nullptr, is on
    /// another device than the CPU, or has elements of another type, an invalid shape, or an
    /// address that is not aligned for T.
    explicit DlpackTensor(DLManagedTensor* tensor) {
        if (tensor == nullptr) refuse("nullptr, expected a DLManagedTensor");
        check(tensor->dl_tensor);
        owned_.reset(tensor);
    }

    /// Returns the address of the first element, including `byte_offset`; nullptr if there is none.
    T* data() const noexcept { return data_; }
    /// Returns the extent of each dimension, in elements.
    std::span<const std::int64_t> shape() const noexcept { return shape_; }
    /// Returns the distance from an element to the next in each dimension, in elements; it may be
    /// negative. A tensor without strides has those of a compact one.
    std::span<const std::int64_t> strides() const noexcept { return strides_; }
    /// Returns the number of elements, the product of the shape.
    std::size_t size() const noexcept { return size_; }
    /// Returns whether the elements lie one after another, with the last dimension fastest.
    bool is_contiguous() const { return detail::is_row_major(shape_, strides_); }
    /// Returns all elements. Throws std::invalid_argument if they are not contiguous.
    std::span<T> elements() const {
        if (!is_contiguous()) {
            refuse("strides " + detail::shape_text(strides_) + " of shape " +
                   detail::shape_text(shape_) + ", expected " +
                   detail::shape_text(detail::row_major_strides(shape_)));
        }
        return {data_, size_};
    }
    /// Returns whether it owns a tensor.
    explicit operator bool() const noexcept { return owned_ != nullptr; }

    /// Returns the tensor and gives up its ownership; the caller then calls its deleter. Returns
    /// nullptr if there is none.
    [[nodiscard]] DLManagedTensor* release() noexcept {
        DLManagedTensor* const tensor = owned_.release();
        *this = DlpackTensor();
        return tensor;
    }

private:
    struct Deleter {
        void operator()(DLManagedTensor* tensor) const noexcept {
            if (tensor->deleter != nullptr) tensor->deleter(tensor);
        }
    };

    [[noreturn]] static void refuse(const std::string& reason) {
        detail::refuse_tensor("from_dlpack", reason);
    }

    void check(const DLTensor& tensor) {
        check_kind(tensor.device, tensor.dtype);
        take_layout(tensor);
        auto* const bytes = static_cast<std::byte*>(tensor.data);
        if (size_ == 0) return;
        if (bytes == nullptr)
            refuse("no data, expected that of " + std::to_string(size_) + " elements");
        check_address(reinterpret_cast<std::uintptr_t>(bytes) + tensor.byte_offset);
        data_ = reinterpret_cast<T*>(bytes + tensor.byte_offset);
    }

    static void check_kind(DLDevice device, DLDataType type) {
        if (device.device_type != kDLCPU) {
            refuse("memory of " + detail::dlpack_text(device) + ", expected CPU");
        }
        constexpr DLDataType wanted = DlpackType<std::remove_const_t<T>>::value;
        if (type.code != wanted.code || type.bits != wanted.bits || type.lanes != wanted.lanes) {
            refuse("elements of type " + detail::dlpack_text(type) + ", expected " +
                   detail::dlpack_text(wanted));
        }
    }

    void take_layout(const DLTensor& tensor) {
        if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
            refuse(std::to_string(tensor.ndim) + " dimensions without a shape, expected one");
        }
        const auto dimensions = static_cast<std::size_t>(tensor.ndim);
        if (dimensions > 0) shape_.assign(tensor.shape, tensor.shape + dimensions);
        size_ = detail::element_count("from_dlpack", shape_, sizeof(T));
        if (dimensions > 0 && tensor.strides != nullptr) {
            strides_.assign(tensor.strides, tensor.strides + dimensions);
        } else {
            strides_ = detail::row_major_strides(shape_);
        }
    }

    static void check_address(std::uintptr_t address) {
        if (address % alignof(T) == 0) return;
        refuse("an address " + std::to_string(address % alignof(T)) + " bytes past a multiple of " +
               std::to_string(alignof(T)) + ", expected a multiple");
    }

    std::unique_ptr<DLManagedTensor, Deleter> owned_;
    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::vector<std::int64_t> shape_;
    std::vector<std::int64_t> strides_;
};

}  // namespace tensorpool
