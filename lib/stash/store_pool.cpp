#include "stash/store_pool.hpp"

#include <tensorpool/pool_options.hpp>

namespace tensorpool::stashing {

MemoryPool& store_pool() {
    // Threads may restore while the process ends.
    static MemoryPool& pool = *new MemoryPool(PoolOptions{.name = "stash"});
    return pool;
}

}  // namespace tensorpool::stashing
