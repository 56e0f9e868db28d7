#pragma once

#include <cstddef>

/// The four functions of NEP 49. Nothing says that NumPy holds the GIL when it calls them: they
/// touch no object of Python's, and any thread may call them. No exception leaves them: nullptr
/// makes NumPy raise a MemoryError.
namespace tensorpool::python {

/// Whether large arrays that need not be zeros ask for huge pages, as NumPy's own handler does
/// where its setting says so. To begin with they do not.
void set_huge_pages(bool wanted) noexcept;

void* allocate(void*, std::size_t bytes) noexcept;
void* allocate_zeroed(void*, std::size_t count, std::size_t element_bytes) noexcept;
void* reallocate(void*, void* block, std::size_t bytes) noexcept;
/// `bytes` is what NumPy believes.
void deallocate(void*, void* block, std::size_t bytes) noexcept;

}  // namespace tensorpool::python
