#include "adaptors/python/numpy_handler.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::python {
namespace {

// Nothing says that NumPy holds the GIL when it calls these: they touch no object of Python's, and
// no exception leaves them. nullptr makes NumPy raise a MemoryError of its own. It keeps no freed
// blocks of theirs: its cache of small ones is part of its default handler.

// As malloc's of the C library, a block of no bytes is not null: null means failure.
std::size_t at_least_one(std::size_t bytes) noexcept {
    return std::max<std::size_t>(bytes, 1);
}

void* allocate(void*, std::size_t bytes) noexcept {
    return get_global_memory_pool().try_allocate(at_least_one(bytes));
}

void* allocate_zeroed(void*, std::size_t count, std::size_t element_bytes) noexcept {
    if (count == 0 || element_bytes == 0) count = element_bytes = 1;
    try {
        return get_global_memory_pool().allocate_zeroed(count, element_bytes);
    } catch (const std::exception&) {
        return nullptr;
    }
}

// NumPy does not say how much the block held, so all that may be used of it is kept.
void* reallocate(void*, void* block, std::size_t bytes) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    try {
        return pool.reallocate(block, pool.usable_size(block), at_least_one(bytes));
    } catch (const std::exception&) {
        return nullptr;
    }
}

// The size is not always what was asked for: an array resized to no elements asked for one and
// frees 1 byte (NumPy 1.24, PyArray_Resize and array_dealloc), and NEP 49 knows of such places. So
// the page map says what the block is.
void deallocate(void*, void* block, std::size_t) noexcept {
    get_global_memory_pool().deallocate(block);
}

PyDataMem_Handler handler = {"tensorpool",
                             1,
                             {.ctx = nullptr,
                              .malloc = allocate,
                              .calloc = allocate_zeroed,
                              .realloc = reallocate,
                              .free = deallocate}};

constexpr const char* capsule_name = "mem_handler";  // NumPy's for such capsules

// Loads the table of NumPy's functions, which also checks that it has those of NEP 49.
bool has_numpy() {
    if (PyArray_API != nullptr) return true;
    if (_import_array() == 0) return true;
    PyArray_API = nullptr;
    return false;
}

}  // namespace

PyObject* numpy_handler() noexcept {
    // Never given back. A module that is imported by a second interpreter shares it: a capsule
    // holds no object.
    static PyObject* const capsule = PyCapsule_New(&handler, capsule_name, nullptr);
    return capsule;
}

int is_numpy_enabled() {
    if (PyArray_API == nullptr) return 0;  // nobody has set it yet
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
