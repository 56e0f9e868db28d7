#pragma once

/// @file
/// Which functions of malloc's family allocated a block and free it, for the interposer. Only a
/// global pool with `Checks::hardened` looks at this. Layer `pages`, whose records hold it; `pool`
/// implements the functions.

#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// The functions that belong together: what one of them allocates, another of them frees. `pool`
/// stands for the pool's own functions and for unknown ones, which are not checked.
enum class AllocatedBy : std::uint8_t { pool, malloc, new_object, new_array };

/// What a free states about its block. A default-constructed one states nothing.
struct FreedAs {
    static constexpr std::size_t unknown = SIZE_MAX;

    std::size_t bytes = unknown;
    std::size_t alignment = unknown;     ///< those up to 64, 0 too, are not distinguished
    AllocatedBy by = AllocatedBy::pool;  ///< `pool`: not known
};

/// Records for a block of the global pool that a function of the program allocated it. Only
/// `new_array` replaces a record, and only `new_object`: an operator for arrays calls the one for
/// objects. REQUIRES: the calling thread holds the block.
TENSORPOOL_API void record_allocated_by(void* block, AllocatedBy by) noexcept;
/// Frees a block of the global pool. In a hardened pool, a statement that does not fit the block is
/// misuse.
TENSORPOOL_API void free_in_global_pool(void* p, const FreedAs& freed) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
