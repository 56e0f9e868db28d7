// A library that exports tensors of the pool to Python and imports Python's; dlpack.py calls it. A
// DLManagedTensor is passed as a plain pointer, so neither Python's headers nor NumPy's are needed.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <utility>

#include <tensorpool/dlpack.hpp>

#define EXAMPLE_API extern "C" __attribute__((visibility("default")))

using FloatTensor = tensorpool::DlpackTensor<const float>;

/// Returns a tensor of `rows` times `columns` floats of the global pool, numbered from 0; nullptr
/// if the pool has not enough memory.
EXAMPLE_API DLManagedTensor* example_make(std::size_t rows, std::size_t columns) try {
    tensorpool::PooledArray<float> array(rows * columns);
    std::iota(array.begin(), array.end(), 0.0F);
    return tensorpool::to_dlpack(
        std::move(array), {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
} catch (const std::exception&) {
    return nullptr;
}

/// Frees a tensor that no library has taken.
EXAMPLE_API void example_drop(DLManagedTensor* tensor) {
    tensor->deleter(tensor);
}

/// Takes a tensor of contiguous floats from Python, until example_release. Returns nullptr for any
/// other tensor, which stays the caller's.
EXAMPLE_API FloatTensor* example_hold(DLManagedTensor* tensor) try {
    auto held = std::make_unique<FloatTensor>(tensor);
    if (held->is_contiguous()) return held.release();
    static_cast<void>(held->release());
    return nullptr;
} catch (const std::exception&) {
    return nullptr;
}
/// Returns the address of the tensor's first element.
EXAMPLE_API const float* example_data(const FloatTensor* held) {
    return held->data();
}
/// Returns the sum of the tensor's elements.
EXAMPLE_API double example_sum(const FloatTensor* held) {
    const auto elements = held->elements();
    return std::accumulate(elements.begin(), elements.end(), 0.0);
}
/// Gives the tensor back to Python.
EXAMPLE_API void example_release(FloatTensor* held) {
    delete held;
}

/// Returns the bytes in use of the global pool.
EXAMPLE_API std::size_t example_bytes_in_use() {
    return tensorpool::get_global_memory_pool().get_total_allocated();
}
