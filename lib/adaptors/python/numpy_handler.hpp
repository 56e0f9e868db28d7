#pragma once

// Before the standard headers, as Python asks.
#include <Python.h>

/// The memory of NumPy's arrays from the global pool, by NEP 49
/// (https://numpy.org/neps/nep-0049.html). All functions need the GIL and raise Python's
/// exceptions; those that return an object then return nullptr.
namespace tensorpool::python {

/// The capsule for PyDataMem_SetHandler. It lives as long as the process, for each array made with
/// it needs it when it goes. A borrowed reference, the same one always. Needs no NumPy.
PyObject* numpy_handler() noexcept;

/// 1 where an array made in the present context comes from the pool, 0 otherwise, -1 with an
/// exception. Needs no NumPy.
int is_numpy_enabled();
/// Puts `handler` into the present context: a new reference to the one that was there. ImportError
/// without NumPy, RuntimeError where that is older than the one that this was compiled with,
/// ValueError where `handler` is none.
PyObject* set_numpy_handler(PyObject* handler);

}  // namespace tensorpool::python
