#include "adaptors/python/numpy_handler.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#include "adaptors/python/numpy_memory.hpp"

namespace tensorpool::python {
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
