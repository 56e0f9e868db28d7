#pragma once

#include <tensorpool/memory_pool.hpp>

namespace perf {

inline void purge() {
    tensorpool::get_global_memory_pool().trim();
}

}  // namespace perf
