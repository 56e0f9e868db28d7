#pragma once

#include <cstddef>

/// The four functions of NEP 49. NumPy may call them without the GIL, so they touch no Python
/// object, and any thread may call them. No exception leaves them: after nullptr, NumPy raises a
/// MemoryError.
namespace tensorpool::python {

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

}  // namespace tensorpool::python
