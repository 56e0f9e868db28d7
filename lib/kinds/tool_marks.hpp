#pragma once

#include "kinds/kind.hpp"

// What AddressSanitizer, MemorySanitizer and Valgrind see of a pool (platform/tools/
// memory_tools.hpp). Nothing here is called without such a tool.

namespace tensorpool::kinds {

/// Shows a new block to the tool.
void mark_new(PoolParts& pool, void* block, std::size_t bytes) noexcept;
/// Checks the free of a small block and shows it to the tool. Returns false if the program goes on
/// after a misuse. The block is then left as it is.
bool check_and_mark_freed(PoolParts& pool, void* p, const Stated& stated) noexcept;

}  // namespace tensorpool::kinds
