#pragma once

// Before the standard headers, as Python requires.
#include <Python.h>

#include <cstddef>

/// Makes NumPy's arrays take memory from the global pool, by NEP 49
/// (https://numpy.org/neps/nep-0049.html).
namespace tensorpool::python {

// The functions that allocate and free. NumPy may call them without the GIL, so they touch no
// Python object, and any thread may call them. No exception leaves them: after nullptr, NumPy
// raises a MemoryError.

/// Sets whether large arrays that need not be zero request huge pages, as NumPy's own handler does
/// depending on its setting. Initially they do not.
void set_huge_pages(bool wanted) noexcept;

/// Allocates `bytes` bytes; 0 gets a block too. Returns nullptr if the pool cannot meet the
/// request.
void* allocate(void*, std::size_t bytes) noexcept;
/// Allocates `count * element_bytes` bytes that are all zero; 0 gets a block too. Returns nullptr
/// if the product overflows or the pool cannot meet the request.
void* allocate_zeroed(void*, std::size_t count, std::size_t element_bytes) noexcept;
/// Changes the size of a block to `bytes`. Returns nullptr, with the block unchanged, if the pool
/// cannot meet the request.
void* reallocate(void*, void* block, std::size_t bytes) noexcept;
/// Returns the text of the calling thread's last request that the pool refused; "" if there was
/// none since `forget_refusal`.
const char* last_refusal() noexcept;
void forget_refusal() noexcept;

/// Frees a block. `bytes` is the size that NumPy assumes, which may be wrong; it is not used.
void deallocate(void*, void* block, std::size_t bytes) noexcept;

// The handler. All functions need the GIL and raise Python exceptions; those that return an object
// then return nullptr.

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
