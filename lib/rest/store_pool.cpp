#include "rest/store_pool.hpp"

#include <atomic>
#include <memory>

#include <tensorpool/pool_options.hpp>

namespace tensorpool::stashing {

MemoryPool& store_pool() {
    // Never destroyed: threads may restore while the process ends. No guard of a static object, for
    // which the child of a fork would wait if another thread was making the pool.
    static constinit std::atomic<MemoryPool*> pool = nullptr;
    MemoryPool* present = pool.load(std::memory_order_acquire);
    if (present != nullptr) return *present;
    auto made = std::make_unique<MemoryPool>(PoolOptions{.name = "stash"});
    if (pool.compare_exchange_strong(present, made.get(), std::memory_order_acq_rel))
        return *made.release();
    return *present;
}

}  // namespace tensorpool::stashing
