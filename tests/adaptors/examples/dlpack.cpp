// A library that hands tensors of the pool to Python and takes Python's: dlpack.py calls it. A
// DLManagedTensor is a plain pointer, so neither Python's headers nor NumPy's are needed.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <utility>

#include <tensorpool/dlpack.hpp>

#ifdef _WIN32
#define EXAMPLE_API extern "C" __declspec(dllexport)
#else
#define EXAMPLE_API extern "C" __attribute__((visibility("default")))
#endif

using FloatTensor = tensorpool::DlpackTensor<const float>;

/// `rows` times `columns` floats of the global pool, counted up from 0; nullptr for more than there
/// is.
EXAMPLE_API DLManagedTensor* example_make(std::size_t rows, std::size_t columns) try {
    tensorpool::PooledArray<float> array(rows * columns);
    std::iota(array.begin(), array.end(), 0.0F);
    return tensorpool::to_dlpack(
        std::move(array), {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
} catch (const std::exception&) {
    return nullptr;
}

/// Gives back what nobody took.
EXAMPLE_API void example_drop(DLManagedTensor* tensor) {
    tensor->deleter(tensor);
}

/// Holds a tensor of Python's, contiguous floats, until example_let_go; nullptr for any other,
/// which the caller still has.
EXAMPLE_API FloatTensor* example_hold(DLManagedTensor* tensor) try {
    auto held = std::make_unique<FloatTensor>(tensor);
    if (held->is_contiguous()) return held.release();
    static_cast<void>(held->release());
    return nullptr;
} catch (const std::exception&) {
    return nullptr;
}
EXAMPLE_API const float* example_data(const FloatTensor* held) {
    return held->data();
}
EXAMPLE_API double example_sum(const FloatTensor* held) {
    const auto elements = held->elements();
    return std::accumulate(elements.begin(), elements.end(), 0.0);
}
EXAMPLE_API void example_let_go(FloatTensor* held) {
    delete held;
}

/// Bytes of the global pool in use.
EXAMPLE_API std::size_t example_bytes_in_use() {
    return tensorpool::get_global_memory_pool().get_total_allocated();
}
