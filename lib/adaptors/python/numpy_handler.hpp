#pragma once

// Before the standard headers, as Python requires.
#include <Python.h>

/// Makes NumPy's arrays take memory from the global pool, by NEP 49
/// (https://numpy.org/neps/nep-0049.html). All functions need the GIL and raise Python exceptions;
/// those that return an object then return nullptr.
namespace tensorpool::python {

/// Returns the capsule for PyDataMem_SetHandler, a borrowed reference to always the same object. It
/// exists as long as the process, because each array made with it needs it to be freed. Needs no
/// NumPy.
PyObject* numpy_handler() noexcept;

/// Returns 1 if an array made in the present context comes from the pool, otherwise 0, or -1 with
/// an exception. Needs no NumPy.
int is_numpy_enabled();
/// Sets the handler of the present context and returns a new reference to the previous one. Raises
/// ImportError without NumPy, RuntimeError if NumPy is older than the one that this was compiled
/// with, and ValueError if `handler` is no handler.
PyObject* set_numpy_handler(PyObject* handler);

}  // namespace tensorpool::python
