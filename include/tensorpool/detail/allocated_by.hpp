#pragma once

/// @file
/// Which functions of malloc's family allocated a block and free it, for the interposer. Only a
/// global pool with `Checks::hardened` looks at this. Layer `pages`.

#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// The functions that belong together: what one of them allocates, another of them frees.
enum class AllocatedBy : std::uint8_t { pool, malloc, new_object, new_array };

/// What a free states about its block. A default-constructed one states nothing.
struct FreedAs {
    static constexpr std::size_t unknown = SIZE_MAX;

    std::size_t bytes = unknown;
    std::size_t alignment = unknown;
    AllocatedBy by = AllocatedBy::pool;  ///< `pool`: frees what any function allocated
};

/// Records for a block of the global pool that a function of the program allocated it. Only
/// `new_array` replaces a record, and only `new_object`: an operator for arrays calls the one for
/// objects, which the program may define. REQUIRES: the pool is hardened, and the calling thread
/// holds the block.
TENSORPOOL_API void record_allocated_by(void* block, AllocatedBy by) noexcept;
/// Frees a block of the global pool. A statement that does not fit the block is misuse. REQUIRES:
/// the pool is hardened.
TENSORPOOL_API void free_in_global_pool(void* p, const FreedAs& freed) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
