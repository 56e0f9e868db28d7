#include "statistics/sums/steady_sources.hpp"

namespace tensorpool::statistics {
namespace {

void raise(Sources& highest, const Sources& now) noexcept {
    for (std::size_t i = 0; i != now.size(); ++i) highest[i] = std::max(highest[i], now[i]);
}

void put_into(BucketStatistics& bucket, const Sources& from, std::uint64_t& max_bytes) noexcept {
    const bool has_one_size = bucket.allocated_bytes == bucket.allocations * bucket.block_bytes;
    bucket.cache_hits = from[magazines];
    bucket.depot_hits = from[depots];
    bucket.system_misses = from[system];
    bucket.cache_misses = from[depots] + from[spans] + from[system];
    bucket.allocations = bucket.cache_hits + bucket.cache_misses;
    max_bytes = std::max(
        max_bytes, has_one_size ? bucket.allocations * bucket.block_bytes : bucket.allocated_bytes);
    bucket.allocated_bytes = max_bytes;
}

void put_into(LargeStatistics& large, const Sources& from) noexcept {
    large.system_misses = from[system];
    large.allocations = from[extents] + from[system];
    large.cache_misses = large.allocations - std::min(large.allocations, large.cache_hits);
}

template <class Part>
void add(PoolStatistics& pool, const Part& part) noexcept {
    pool.allocations += part.allocations;
    pool.allocated_bytes += part.allocated_bytes;
    pool.cache_hits += part.cache_hits;
    pool.cache_misses += part.cache_misses;
    pool.system_misses += part.system_misses;
}

}  // namespace

void SteadySources::steady(PoolStatistics& pool, OfPool& highest) noexcept {
    pool.allocations = pool.allocated_bytes = 0;
    pool.cache_hits = pool.cache_misses = pool.system_misses = 0;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        raise(highest.buckets[bucket], sources_of(pool.buckets[bucket]));
        put_into(pool.buckets[bucket], highest.buckets[bucket], highest.allocated_bytes[bucket]);
        add(pool, pool.buckets[bucket]);
    }
    raise(highest.large, sources_of(pool.large));
    put_into(pool.large, highest.large);
    add(pool, pool.large);
}

void SteadySources::steady(std::vector<PoolStatistics>& pools) {
    std::map<std::uint64_t, OfPool> present;
    for (PoolStatistics& pool : pools) {
        const auto known = highest_.find(pool.id);
        OfPool& highest = present[pool.id];
        if (known != highest_.end()) highest = known->second;
        steady(pool, highest);
    }
    highest_ = std::move(present);
}

}  // namespace tensorpool::statistics
