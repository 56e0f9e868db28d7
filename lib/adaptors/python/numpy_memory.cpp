#include "adaptors/python/context_blocks.hpp"
#include "adaptors/python/module_part.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/memory_pool.hpp>

#include "platform/platform.hpp"

// Makes NumPy's arrays take memory from the global pool, by NEP 49
// (https://numpy.org/neps/nep-0049.html). NumPy may call the functions that allocate and free
// without the interpreter's lock, so they touch no Python object, and any thread may call them. No
// exception leaves them: after nullptr, NumPy raises a MemoryError.
//
// NumPy caches freed small blocks only in its own handler, so these functions compete with that
// cache. Blocks up to 64 KiB therefore take the pool's inline path in both directions. An array of
// 8 bytes takes 67 ns, compared to 66 ns with NumPy's own handler and 79 ns if every call took the
// slow path. A hundred at once take 88 ns each, compared to 101 ns with NumPy's own.

namespace tensorpool::python {
namespace {

namespace py = pybind11;

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

struct Refusal {
    std::size_t bytes = 0;
    std::array<char, 1792> text = {};
};
constinit thread_local Refusal refusal;

/// Returns what `request` for so many bytes returns. If it throws, returns nullptr and keeps the
/// text.
template <class Request>
void* keep_refusal(std::size_t bytes, Request request) noexcept {
    try {
        return request();
    } catch (const std::exception& error) {
        refusal.bytes = bytes;
        std::snprintf(refusal.text.data(), refusal.text.size(), "%s", error.what());
        return nullptr;
    }
}

/// Allocates if the thread's cache cannot: at the bucket's first use, for sizes above the buckets,
/// and if the pool is exhausted.
void* allocate_slowly(std::size_t bytes) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    const bool huge =
        bytes >= huge_from_bytes && requests_huge_pages.load(std::memory_order_relaxed);
    if (!huge) return keep_refusal(bytes, [&] { return pool.allocate_prefaulted(bytes); });
    void* const block = keep_refusal(bytes, [&] { return pool.allocate(bytes); });
    if (block != nullptr) platform::prefer_huge_pages(block, bytes);
    return block;
}

// A request for 0 bytes gets a block too.
void* allocate(void*, std::size_t bytes) noexcept {
    bytes = at_least_one(bytes);
    const InContext in_context;
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
        const InContext in_context;
        return keep_refusal(bytes,
                            [&] { return get_global_memory_pool().allocate_zeroed(1, bytes); });
    }
    void* const block = allocate(nullptr, bytes);
    if (block != nullptr) std::memset(block, 0, bytes);
    return block;
}

// NumPy does not pass the old size, so all usable bytes are kept.
void* reallocate(void*, void* block, std::size_t bytes) noexcept {
    const InContext in_context;
    MemoryPool& pool = get_global_memory_pool();
    return keep_refusal(bytes, [&] {
        return pool.reallocate(block, pool.usable_size(block), at_least_one(bytes));
    });
}

// The size that NumPy passes is not always the requested one: an array resized to no elements
// requests one element and frees 1 byte (NumPy 1.24, PyArray_Resize and array_dealloc), and NEP 49
// mentions such cases. So the page map determines the size. Only the pool may report that a pointer
// is no block.
void deallocate(void*, void* block, std::size_t) noexcept {
    const InContext in_context;
    MemoryPool& pool = get_global_memory_pool();
    if (!detail::pool_addresses.contains(block)) return pool.deallocate(block);
    const std::size_t usable = detail::bytes_of_block_in_use(block);
    // False for 0 and for the finer sizes of malloc.
    const unsigned bucket = detail::bucket_of(usable);
    const bool is_of_bucket =
        bucket < detail::bucket_count && detail::bucket_bytes(bucket) == usable;
    return is_of_bucket ? pool.deallocate(block, usable) : pool.deallocate(block);
}

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

/// Returns the capsule for PyDataMem_SetHandler: always the same object, which is never freed,
/// because each array made with it needs it. A second interpreter that imports the module shares
/// it: a capsule holds no object.
py::handle numpy_handler() {
    static PyObject* const capsule = PyCapsule_New(&handler, capsule_name, nullptr);
    return capsule;
}

// Takes a new reference; throws the pending Python exception if it is null.
py::object owned(PyObject* object) {
    if (object == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
}

/// Returns whether an array made in the present context comes from the pool. Needs no NumPy.
bool is_numpy_enabled() {
    return PyArray_API != nullptr && owned(PyDataMem_GetHandler()).is(numpy_handler());
}

/// Sets the handler of the present context and returns the previous one. Raises ImportError without
/// NumPy, RuntimeError if NumPy is older than the one that this was compiled with, and ValueError
/// if `wanted` is no handler.
py::object set_numpy_handler(const py::object& wanted) {
    if (!has_numpy()) throw py::error_already_set();
    if (PyCapsule_IsValid(wanted.ptr(), capsule_name) == 0) {
        PyErr_Format(PyExc_ValueError,
                     "tensorpool: set_numpy_handler: got %R, expected a capsule named %s",
                     wanted.ptr(), capsule_name);
        throw py::error_already_set();
    }
    return owned(PyDataMem_SetHandler(wanted.ptr()));
}

/// Returns the text and the bytes of the calling thread's last request that the pool refused, or
/// an empty text and 0, and forgets it.
py::tuple take_refusal() {
    py::tuple taken = py::make_tuple(py::bytes(refusal.text.data()), refusal.bytes);
    refusal.bytes = 0;
    refusal.text[0] = '\0';
    return taken;
}

/// Sets whether large arrays that need not be zero request huge pages, as NumPy's own handler does
/// depending on its setting. Initially they do not.
void set_huge_pages(bool is_wanted) {
    requests_huge_pages.store(is_wanted, std::memory_order_relaxed);
}

const ModulePart part([](py::module_& module) {
    module.attr("handler") = numpy_handler();
    module.def("is_numpy_enabled", is_numpy_enabled);
    module.def("set_numpy_handler", set_numpy_handler);
    module.def("set_huge_pages", set_huge_pages);
    module.def("take_refusal", take_refusal);
});

}  // namespace
}  // namespace tensorpool::python
