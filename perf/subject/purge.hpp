#pragma once

#include <tensorpool/memory_pool.hpp>

namespace perf {

/// Returns the free memory of the global pool to the system.
inline void purge() {
    tensorpool::get_global_memory_pool().trim();
}

}  // namespace perf
