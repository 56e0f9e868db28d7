#include <algorithm>
#include <cstring>

#include "blocks/thread_registry.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_1 {
namespace {

using blocks::Bucket;
using pages::Changes;

// A callback may use the pool; what it does there is not told again.
constinit thread_local bool telling = false;

}  // namespace

bool Pool::reserve(std::size_t capacity, pages::Refusal& refusal) noexcept {
    Changes changes;
    const bool done = heap_.reserve(capacity, changes, refusal);
    tell(changes);
    if (!done) {
        totals_.failures.fetch_add(1, std::memory_order_relaxed);
        tell(PoolEvent::Kind::failure, capacity, refusal.limit);
    }
    return done;
}

std::size_t Pool::trim() noexcept {
    Changes changes;
    if (blocks::Cache* const cache = blocks::ThreadRegistry::attached(buckets_)) {
        cache->give_back_all();
    }
    buckets_.drain(Bucket::Magazines::destroy, changes);
    large_.empty_cache(changes);
    heap_.trim(changes);
    tell(changes);
    return changes.given_back;
}

// Everything that is free, into the page heap, so that what was freed in one size serves another.
void Pool::gather(Changes& changes) noexcept {
    if (blocks::Cache* const cache = blocks::ThreadRegistry::attached(buckets_)) {
        cache->give_back_all();
    }
    buckets_.drain(Bucket::Magazines::keep, changes);
    large_.empty_cache(changes);
}

void Pool::keep_to_retention(Changes& changes) noexcept {
    if (!heap_.keep_to_retention(changes)) return;
    const std::size_t unneeded = large_.empty_cache_of_unneeded(changes);
    if (unneeded != 0) heap_.give_back(unneeded, changes);
}

void Pool::tell(const Changes& changes) noexcept {
    if (changes.grown != 0) tell(PoolEvent::Kind::growth, changes.grown, "");
    if (changes.given_back != 0) tell(PoolEvent::Kind::give_back, changes.given_back, "");
}

void Pool::tell(PoolEvent::Kind kind, std::size_t bytes, const char* limit) noexcept {
    if (!options_.on_event || telling) return;
    telling = true;
    options_.on_event({.kind = kind,
                       .pool = options_.name.c_str(),
                       .bytes = bytes,
                       .in_use = slots_.in_use_bytes(),
                       .capacity = capacity(),
                       .limit = limit});
    telling = false;
}

PoolStatistics Pool::statistics() const noexcept {
    const auto read = [](const Counter& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    PoolStatistics figures;
    std::strncpy(figures.name, options_.name.c_str(), sizeof figures.name - 1);
    slots_.sum(figures);
    figures.capacity_bytes = read(totals_.capacity_bytes);
    figures.reserved_bytes = read(totals_.reserved_bytes);
    figures.limit_bytes = options_.max_capacity;
    figures.peak_capacity_bytes = read(totals_.peak_capacity_bytes);
    figures.peak_reserved_bytes = read(totals_.peak_reserved_bytes);
    figures.failures = read(totals_.failures);
    figures.large.cached_bytes = read(totals_.large_cached_bytes);
    figures.cached_bytes = figures.large.cached_bytes;
    figures.free_bytes = read(totals_.free_bytes);
    figures.lost_bytes = read(totals_.lost_bytes);
    figures.growths = read(totals_.growths);
    figures.grown_bytes = read(totals_.grown_bytes);
    figures.give_backs = read(totals_.give_backs);
    figures.given_back_bytes = read(totals_.given_back_bytes);
    figures.record_bytes = heap_.record_bytes() + records_.bytes_held() + slots_.bytes_held() +
                           buckets_.magazine_bytes();
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
        BucketStatistics& one = figures.buckets[bucket];
        one.capacity_bytes = read(totals_.bucket_capacity_bytes[bucket]);
        figures.in_use_bytes += one.in_use_bytes;
        figures.parked_bytes += one.parked_bytes;
        figures.requested_bytes += one.requested_bytes;
        figures.allocated_bytes += one.allocated_bytes;
        figures.allocations += one.allocations;
        figures.deallocations += one.deallocations;
        figures.cache_hits += one.cache_hits;
        figures.cache_misses += one.cache_misses;
    }
    figures.in_use_bytes += figures.large.in_use_bytes;
    figures.requested_bytes += figures.large.requested_bytes;
    figures.allocated_bytes += figures.large.allocated_bytes;
    figures.allocations += figures.large.allocations;
    figures.deallocations += figures.large.deallocations;
    figures.cache_hits += figures.large.cache_hits;
    figures.cache_misses += figures.large.cache_misses;
    // Allocations are read later than frees, so while others work the sum may show more than there
    // ever was. What is held is never less than what is in use.
    figures.peak_in_use_bytes = read(totals_.peak_held_bytes);
    figures.in_use_bytes = std::min(figures.in_use_bytes, figures.peak_in_use_bytes);
    figures.threads = slots_.taken_count();
    return figures;
}

void Pool::add_to(Snapshot& snapshot) const {
    snapshot.pools.push_back(statistics());
}

}  // namespace abi_1
}  // namespace tensorpool::detail
