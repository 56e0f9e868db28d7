#pragma once

/// @file
/// A tensor of another library, taken by DLPack.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlpack/dlpack.h>

#include <tensorpool/detail/tensor_layout.hpp>
#include <tensorpool/dlpack_type.hpp>

namespace tensorpool {

/// Owns a DLManagedTensor whose elements are T, or are read as const T; calls its deleter when it
/// goes. Move-only; one thread at a time, and what other threads may do with the elements is
/// between them and the library that made them.
template <class T>
requires DlpackElement<std::remove_const_t<T>>
class DlpackTensor {
public:
    /// Owns nothing.
    DlpackTensor() noexcept = default;
    /// Takes `tensor`. Throws std::invalid_argument, and leaves it to the caller, where it is
    /// nullptr, lies on another device than the CPU, has another type than T, a shape that makes no
    /// sense, or elements at addresses that T cannot have.
    explicit DlpackTensor(DLManagedTensor* tensor) {
        if (tensor == nullptr) refuse("nullptr, expected a DLManagedTensor");
        check(tensor->dl_tensor);
        owned_.reset(tensor);
    }

    /// The first element, `byte_offset` counted in; nullptr where there is none.
    T* data() const noexcept { return data_; }
    /// The extent of each dimension, in elements.
    std::span<const std::int64_t> shape() const noexcept { return shape_; }
    /// From an element to the next of each dimension, in elements; may be negative. Those of a
    /// compact tensor where it had none.
    std::span<const std::int64_t> strides() const noexcept { return strides_; }
    /// Elements: the product of the shape.
    std::size_t size() const noexcept { return size_; }
    /// True where the elements lie one after another, the last dimension's next to each other.
    bool is_contiguous() const { return detail::is_row_major(shape_, strides_); }
    /// All elements. Throws std::invalid_argument where they are not contiguous.
    std::span<T> elements() const {
        if (!is_contiguous()) {
            refuse("strides " + detail::shape_text(strides_) + " of shape " +
                   detail::shape_text(shape_) + ", expected " +
                   detail::shape_text(detail::row_major_strides(shape_)));
        }
        return {data_, size_};
    }
    explicit operator bool() const noexcept { return owned_ != nullptr; }

    /// Hands the tensor to the caller, who then calls its deleter; nullptr where it owns none.
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
