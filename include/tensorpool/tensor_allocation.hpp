#pragma once

/// @file
/// Memory for one tensor, with its shape and type: `empty(shape, type)`. Sizes are bytes unless a
/// name says otherwise.

#include <vector>

#include <tensorpool/data_type.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// Owns the memory of one tensor, and knows its shape and type. Move-only. One thread at a time may
/// use it. What its end does with the memory depends on the source (PooledAllocation).
class TensorAllocation {
public:
    /// Makes a handle that owns nothing, without dimensions and type.
    TensorAllocation() noexcept = default;
    /// Takes over memory for a tensor of this shape and type. `shape` has the extent of each
    /// dimension, the slowest first; empty means one element. Throws std::invalid_argument, which
    /// names the sizes, if the memory is smaller than that, and what `tensor_bytes` throws; the
    /// memory is then ended.
    TensorAllocation(PooledAllocation memory, std::vector<std::int64_t> shape, DataType type)
        : memory_(std::move(memory)), shape_(std::move(shape)), type_(type) {
        const std::uint64_t needed = tensor_bytes(type_, std::span<const std::int64_t>(shape_));
        bytes_ = static_cast<std::size_t>(needed);
        if (needed > memory_.size()) {
            throw std::invalid_argument(
                "tensorpool: TensorAllocation: " + std::to_string(memory_.size()) +
                " B of memory; expected " + std::to_string(needed) + " B of " + to_string(type_));
        }
    }

    /// Returns the address of the first element, which for memory of a device may be one of the
    /// device; nullptr if the handle owns nothing.
    void* get() const noexcept { return memory_.get(); }
    /// Returns the bytes of the tensor, which may be fewer than those of the memory; 0 if the
    /// handle owns nothing.
    std::size_t bytes() const noexcept { return memory_ ? bytes_ : 0; }
    /// Returns the extent of each dimension, the slowest first; empty means one element.
    const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
    /// Returns how the elements are stored.
    const DataType& type() const noexcept { return type_; }
    /// Returns the device that the memory belongs to, as DLPack describes it. Returns the CPU if
    /// the handle owns nothing, also for a tensor without elements that was made on another device.
    SourceDevice device() const noexcept { return memory_.device(); }
    /// Returns the handle of the memory.
    const PooledAllocation& memory() const noexcept { return memory_; }

    /// Returns the tensor's elements, one row after another, at the address at which the host can
    /// access them. The caller must have written them before reading them. Throws
    /// std::invalid_argument if the elements are of another type than T, or if the host cannot
    /// access the memory.
    template <class T>
    std::span<T> as() const {
        if (DataType::of<T>() != type_) {
            throw std::invalid_argument("tensorpool: TensorAllocation: as<" +
                                        to_string(DataType::of<T>()) +
                                        ">: expected its own type, " + to_string(type_));
        }
        return memory_.as<T>().first(bytes() / sizeof(T));
    }

    /// Gives up the memory and returns its handle.
    [[nodiscard]] PooledAllocation release() noexcept { return std::move(memory_); }

private:
    PooledAllocation memory_;
    std::vector<std::int64_t> shape_;
    std::size_t bytes_ = 0;
    DataType type_;
};

/// Allocates memory for a tensor of this shape and type from `source`: a MemoryPool or another
/// source of PooledAllocation, with the arguments that it takes behind the size, such as a stream.
/// The elements are not initialized. `shape` has the extent of each dimension, the slowest first;
/// empty means one element. Nothing is allocated if an extent is 0.
///
/// Throws std::invalid_argument, naming what was found, for a negative extent, for no type, for
/// elements that do not fill whole blocks of the type, and for more than 2^63 - 1 bytes. Throws
/// what the source throws if it cannot meet the request.
///
///     TensorAllocation weights = empty(pool, {4096, 4096}, DataType::of<float>());
template <class Source, class... Arguments>
requires std::constructible_from<PooledAllocation, Source&, std::size_t, Arguments...>
[[nodiscard]] TensorAllocation empty(Source& source, std::vector<std::int64_t> shape, DataType type,
                                     Arguments... arguments) {
    const std::uint64_t bytes = tensor_bytes(type, std::span<const std::int64_t>(shape));
    return {PooledAllocation(source, static_cast<std::size_t>(bytes), arguments...),
            std::move(shape), type};
}

/// Allocates memory for a tensor of this shape and type from the global pool. The elements are not
/// initialized. `shape` has the extent of each dimension, the slowest first; empty means one
/// element. Nothing is allocated if an extent is 0.
///
/// Throws std::invalid_argument, naming what was found, for a negative extent, for no type, for
/// elements that do not fill whole blocks of the type, and for more than 2^63 - 1 bytes. Throws
/// AllocationError if the pool cannot meet the request.
[[nodiscard]] inline TensorAllocation empty(std::vector<std::int64_t> shape, DataType type) {
    return empty(get_global_memory_pool(), std::move(shape), type);
}

}  // namespace tensorpool
