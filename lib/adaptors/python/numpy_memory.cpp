#include "adaptors/python/numpy_memory.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/memory_pool.hpp>

#include "platform/platform.hpp"

// NumPy caches freed small blocks only in its own handler, so these functions compete with that
// cache. Blocks up to 64 KiB therefore take the pool's inline path in both directions. An array of
// 8 bytes takes 67 ns, compared to 66 ns with NumPy's own handler and 79 ns if every call took the
// slow path. A hundred at once take 88 ns each, compared to 101 ns with NumPy's own.

namespace tensorpool::python {
namespace {

/// The size from which on NumPy's own handler requests huge pages (NumPy 1.24, _npy_alloc_cache).
/// Fewer page faults are half of the gain: workload E of perf/workloads takes a tenth less user
/// time.
constexpr std::size_t huge_from_bytes = std::size_t{4} << 20;
// Relaxed: either value is right for an array that is made at the same time.
constinit std::atomic<bool> requests_huge_pages = false;

// A block of no bytes is not null, as with the C library's malloc: null means failure.
std::size_t at_least_one(std::size_t bytes) noexcept {
    return std::max<std::size_t>(bytes, 1);
}

constinit thread_local std::array<char, 1792> refusal = {};

/// Returns what `request` returns. If it throws, returns nullptr and keeps the text.
template <class Request>
void* keep_refusal(Request request) noexcept {
    try {
        return request();
    } catch (const std::exception& error) {
        std::snprintf(refusal.data(), refusal.size(), "%s", error.what());
        return nullptr;
    }
}

/// Allocates if the thread's cache cannot: at the bucket's first use, for sizes above the buckets,
/// and if the pool is exhausted.
void* allocate_slowly(std::size_t bytes) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    const bool huge =
        bytes >= huge_from_bytes && requests_huge_pages.load(std::memory_order_relaxed);
    if (!huge) return keep_refusal([&] { return pool.allocate_prefaulted(bytes); });
    void* const block = keep_refusal([&] { return pool.allocate(bytes); });
    if (block != nullptr) platform::prefer_huge_pages(block, bytes);
    return block;
}

}  // namespace

void set_huge_pages(bool wanted) noexcept {
    requests_huge_pages.store(wanted, std::memory_order_relaxed);
}

void* allocate(void*, std::size_t bytes) noexcept {
    bytes = at_least_one(bytes);
    const unsigned bucket = detail::bucket_of(bytes);
    if (bucket < detail::bucket_count) {
        void* const block = detail::first_thread_cache().pop(bucket, bytes);
        if (block != nullptr) [[likely]]
            return block;
    }
    return allocate_slowly(bytes);
}

// Large blocks are not populated and request no huge pages, as in NumPy: no page of a fresh block
// is touched yet.
void* allocate_zeroed(void*, std::size_t count, std::size_t element_bytes) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes)) bytes = SIZE_MAX;
    bytes = at_least_one(bytes);
    if (bytes > detail::largest_block_bytes) {
        return keep_refusal([&] { return get_global_memory_pool().allocate_zeroed(1, bytes); });
    }
    void* const block = allocate(nullptr, bytes);
    if (block != nullptr) std::memset(block, 0, bytes);
    return block;
}

// NumPy does not pass the old size, so all usable bytes are kept.
void* reallocate(void*, void* block, std::size_t bytes) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    return keep_refusal(
        [&] { return pool.reallocate(block, pool.usable_size(block), at_least_one(bytes)); });
}

const char* last_refusal() noexcept {
    return refusal.data();
}

void forget_refusal() noexcept {
    refusal[0] = '\0';
}

// The size that NumPy passes is not always the requested one: an array resized to no elements
// requests one element and frees 1 byte (NumPy 1.24, PyArray_Resize and array_dealloc), and NEP 49
// mentions such cases. So the page map determines the size. Only the pool may report that a pointer
// is no block.
void deallocate(void*, void* block, std::size_t) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    if (!detail::pool_addresses.contains(block)) return pool.deallocate(block);
    const std::size_t usable = detail::bytes_of_block_in_use(block);
    // False for 0 and for the finer sizes of malloc.
    const unsigned bucket = detail::bucket_of(usable);
    const bool is_of_bucket =
        bucket < detail::bucket_count && detail::bucket_bytes(bucket) == usable;
    return is_of_bucket ? pool.deallocate(block, usable) : pool.deallocate(block);
}
namespace {

PyDataMem_Handler handler = {"tensorpool",
                             1,
                             {.ctx = nullptr,
                              .malloc = allocate,
                              .calloc = allocate_zeroed,
                              .realloc = reallocate,
                              .free = deallocate}};

constexpr const char* capsule_name = "mem_handler";  // NumPy's name for such capsules

// Loads the table of NumPy's functions; this also checks that it has those of NEP 49.
bool has_numpy() {
    if (PyArray_API != nullptr) return true;
    if (_import_array() == 0) return true;
    PyArray_API = nullptr;
    return false;
}

}  // namespace

PyObject* numpy_handler() noexcept {
    // Never freed. A second interpreter that imports the module shares it: a capsule holds no
    // object.
    static PyObject* const capsule = PyCapsule_New(&handler, capsule_name, nullptr);
    return capsule;
}

int is_numpy_enabled() {
    if (PyArray_API == nullptr) return 0;  // the handler was never set
    PyObject* const present = PyDataMem_GetHandler();
    if (present == nullptr) return -1;
    Py_DECREF(present);
    return present == numpy_handler() ? 1 : 0;
}

PyObject* set_numpy_handler(PyObject* wanted) {
    if (!has_numpy()) return nullptr;
    if (PyCapsule_IsValid(wanted, capsule_name) == 0) {
        PyErr_Format(PyExc_ValueError,
                     "tensorpool: set_numpy_handler: got %R, expected a capsule named %s", wanted,
                     capsule_name);
        return nullptr;
    }
    return PyDataMem_SetHandler(wanted);
}

}  // namespace tensorpool::python
