#include "kinds/free_memory.hpp"

#include <algorithm>

#include "blocks/take_back.hpp"
#include "blocks/thread_registry.hpp"
#include "kinds/hardened_kind.hpp"
#include "kinds/served_kind.hpp"

namespace tensorpool::kinds {

using blocks::TakeFrom;

bool empty_caches(PoolParts& pool, blocks::BucketDepot::Magazines magazines,
                  Changes& changes) noexcept {
    const bool all_plans = !pool.is_global() || give_back_idle_plans();
    if (pool.is_hardened()) empty_quarantine(pool, changes);
    blocks::give_back_own(pool.buckets, changes);
    const bool all = blocks::take_back(pool.buckets, TakeFrom::everyone, changes);
    pool.buckets.drain(magazines, changes);
    pool.large.empty_cache(changes);
    return all && all_plans;
}

bool keep_to_retention(PoolParts& pool, Changes& changes) noexcept {
    if (!pool.heap.keep_to_retention(changes)) return false;
    std::size_t unneeded =
        pool.large.empty_cache_of_unneeded(changes) + pool.buckets.drain_unneeded(changes);
    if (blocks::Cache* const cache = blocks::thread_registry().attached(pool.buckets)) {
        unneeded += cache->large.give_back_unneeded(changes);
    }
    // Periods of length 0 end on every call. No large block is parked then.
    if (pool.options.retain.milliseconds != 0) {
        const auto free_bytes = [&] {
            return pool.totals().free_bytes.load(std::memory_order_relaxed);
        };
        const std::uint64_t before = free_bytes();
        blocks::take_back(pool.buckets, TakeFrom::idle, changes);
        const std::uint64_t after = free_bytes();
        unneeded += after - std::min(after, before);
    }
    if (unneeded != 0) pool.heap.give_back(unneeded, changes);
    return true;
}

std::size_t unoffered_bytes(const PoolParts& pool) noexcept {
    return pool.heap.kept().unoffered_bytes() + pool.buckets.shared().large_parking_limit.taken();
}

void offer_free(PoolParts& pool, Changes& changes) noexcept {
    blocks::give_back_own(pool.buckets, changes);
    blocks::take_back(pool.buckets, TakeFrom::everyone, changes);
    pool.large.empty_cache(changes);
    pool.heap.offer_free();
}

}  // namespace tensorpool::kinds
