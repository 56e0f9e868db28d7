#pragma once

#include "events/misuse.hpp"
#include "kinds/kind.hpp"

// Reports of misuse. Each returns if the program goes on after it. The block is then left as it is.

namespace tensorpool::kinds {

/// Describes a misuse of what was found at `p`.
events::Misuse misuse_of(const PoolParts& pool, events::MisuseKind kind, const void* p,
                         const Found& found) noexcept;
/// Reports that `call` got a pointer that is no block in use that it may have.
void report_pointer(PoolParts& pool, const void* p, const Found& found,
                    const char* call = "deallocate") noexcept;
/// Reports a size that does not fit the block in use at `p`. Returns false if it fits.
bool report_size(PoolParts& pool, const void* p, const Found& found, const Stated& stated) noexcept;
/// Reports what is wrong with a free of `p`: the pointer or the stated size.
void report_free(PoolParts& pool, const void* p, const Stated& stated) noexcept;
/// Returns the bytes of a block in use that a reallocation may copy, at most `stated_bytes`, which
/// are reported if the block has fewer.
std::size_t bytes_to_copy(PoolParts& pool, const void* p, const Found& found,
                          std::size_t stated_bytes) noexcept;
/// Returns what `usable_size` does, and reports a pointer that is no block in use.
std::size_t checked_usable_size(PoolParts& pool, const void* p) noexcept;
/// The largest requested size of a block for which a free with this stated size is valid.
std::size_t max_requested(const PoolParts& pool, const Stated& stated) noexcept;
/// Reports blocks in use of a pool that is about to be destroyed, if its checks include leaks.
void report_leaks(const PoolParts& pool) noexcept;

}  // namespace tensorpool::kinds

// What AddressSanitizer, MemorySanitizer and Valgrind see of a pool (platform/tools/
// memory_tools.hpp). Nothing here is called without such a tool.

namespace tensorpool::kinds {

/// Shows a new block to the tool.
void mark_new(PoolParts& pool, void* block, std::size_t bytes) noexcept;
/// Checks the free of a small block and shows it to the tool. Returns false if the program goes on
/// after a misuse. The block is then left as it is.
bool check_and_mark_freed(PoolParts& pool, void* p, const Stated& stated) noexcept;

}  // namespace tensorpool::kinds
