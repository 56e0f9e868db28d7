#pragma once

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::stashing {

/// Returns the process's pool "stash", from which compressed content is allocated unless the
/// options name another one. Made on first use and never destroyed. Throws AllocationError.
MemoryPool& store_pool();

}  // namespace tensorpool::stashing
