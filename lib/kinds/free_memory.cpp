#include "kinds/free_memory.hpp"

#include "kinds/kinds.hpp"
#include "limits/ladder.hpp"

namespace tensorpool::kinds {

using blocks::TakeFrom;

namespace {

// A rung that gives back what a pool keeps: `empty` returns false if other threads kept some of it.
template <class Empty>
constexpr limits::Rung rung(const char* name, Empty) noexcept {
    return {name, [](limits::Lack& lack) noexcept -> std::size_t {
                if (lack.kept == nullptr) return 0;
                if (!Empty()(*static_cast<KeptMemory*>(lack.kept))) lack.is_all = false;
                return 0;
            }};
}

constexpr limits::Rung rungs[rung_count] = {
    rung("idle plans",
         [](KeptMemory& kept) { return !kept.pool.is_global() || give_back_idle_plans(); }),
    rung("quarantine",
         [](KeptMemory& kept) {
             if (kept.pool.is_hardened()) empty_quarantine(kept.pool, kept.changes);
             return true;
         }),
    rung("cache of the thread",
         [](KeptMemory& kept) {
             blocks::give_back_own(kept.pool.buckets, kept.changes);
             return true;
         }),
    rung("caches of other threads",
         [](KeptMemory& kept) {
             return blocks::take_back(kept.pool.buckets, TakeFrom::everyone, kept.changes);
         }),
    rung("depots",
         [](KeptMemory& kept) {
             kept.pool.buckets.drain(kept.magazines, kept.changes);
             return true;
         }),
    rung("cached whole pages",
         [](KeptMemory& kept) {
             kept.pool.large.empty_cache(kept.changes);
             return true;
         }),
};

}  // namespace

void set_rungs() noexcept {
    for (unsigned i = 0; i != rung_count; ++i) limits::ladder().set(i, rungs[i]);
}

bool empty_caches(PoolParts& pool, blocks::BucketDepot::Magazines magazines,
                  Changes& changes) noexcept {
    KeptMemory kept{pool, magazines, changes};
    limits::Lack lack{.kept = &kept};
    limits::ladder().climb(lack);
    return lack.is_all;
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
