#include "kinds/kinds.hpp"

#include "events/recorder_hooks.hpp"
#include "kinds/free_memory.hpp"
#include "kinds/reports.hpp"
#include "kinds/watcher.hpp"

namespace tensorpool::kinds {
namespace {

using blocks::BucketSet;
using blocks::Cache;
using blocks::thread_registry;

// The thread's cache, if it is `visible` and this is not the call after every 16th trip.
Cache* exchanging_cache(PoolParts& pool, const detail::ThreadCache& visible) noexcept {
    Cache* const cache = blocks::own_cache(pool.place);
    return cache == &visible && !cache->room().is_time_to_look() ? cache : nullptr;
}

}  // namespace

bool takes_small(const PoolParts&, const Request& request) noexcept {
    return bucket_for(request.bytes, request.alignment) != bucket_count;
}

void* allocate_small(PoolParts& pool, const Request& request, SlowPath& path) noexcept {
    const unsigned bucket = bucket_for(request.bytes, request.alignment);
    void* const block = allocate_block(pool, pool.buckets, bucket, request, path);
    if (block != nullptr && pool.is_checked())
        begin_use(pool.buckets[bucket].traits, block, request.bytes);
    return block;
}

bool takes_finer(const PoolParts& pool, const Request& request) noexcept {
    return request.alignment <= base::finer_alignment && request.bytes <= largest_block_bytes &&
           pool.has_finer_sizes();
}

void* allocate_finer(PoolParts& pool, const Request& request, SlowPath& path) noexcept {
    const base::BlockSize size = base::finest_size(request.bytes);
    return allocate_block(pool, pool.series(size.series), size.bucket, request, path);
}

void* allocate_block(PoolParts& pool, BucketSet& set, unsigned bucket, const Request& request,
                     SlowPath& path) noexcept {
    const std::size_t bytes = request.bytes;
    Cache* const cache = attach(pool, set);
    if (cache == nullptr) return allocate_direct(set, bucket, bytes, path);
    if (is_look_due(*cache, bytes)) [[unlikely]] {
        void* const block = allocate_watched(pool, *cache, request, path);
        if (block != nullptr) return block;
    }
    if (void* const block = cache->pop(bucket, bytes)) return block;
    if (cache->room().is_time_to_look()) keep_to_retention(pool, path);
    return cache->pop_slow(bucket, bytes, path);
}

void* take_parked_block(PoolParts& pool, std::size_t bytes) noexcept {
    const unsigned bucket = bucket_of(bytes + (pool.is_hardened() ? base::Canary::min_bytes : 0));
    if (bytes == 0 || bucket >= bucket_count || bytes > pool.options.max_allocation) return nullptr;
    if (pool.is_in_scope()) return nullptr;
    events::look_for_recorder();
    Cache* const cache = blocks::own_cache(pool.place);
    if (cache == nullptr || events::is_recording()) return nullptr;
    void* const block = cache->pop(bucket, bytes);
    if (block == nullptr) return nullptr;
    if (pool.is_hardened()) {
        begin_hardened_use(pool, block, bytes, bucket, {});
    } else {
        begin_use(pool.buckets[bucket].traits, block, bytes);
    }
    return block;
}

void* take_exchanged_block(PoolParts& pool, const detail::ThreadCache& visible, std::size_t bytes,
                           Changes& changes) noexcept {
    const unsigned bucket = bucket_of(bytes);
    Cache* const cache = exchanging_cache(pool, visible);
    if (cache == nullptr || bucket >= bucket_count || bytes > pool.options.max_allocation ||
        is_look_due(*cache, bytes)) {
        return nullptr;
    }
    return cache->pop_exchanged(bucket, bytes, changes);
}

bool give_exchanged_block(PoolParts& pool, const detail::ThreadCache& visible, void* p,
                          std::size_t bytes, Changes& changes) noexcept {
    const unsigned bucket = bucket_of(bytes);
    Cache* const cache = exchanging_cache(pool, visible);
    if (cache == nullptr || bucket >= bucket_count || cache->is_guarded_or_null(p)) return false;
    const PageEntry entry = pool.entry(p);
    if (!pool.owns(entry) || !entry.is_bucket() || entry.series() != 0) return false;
    cache->push_slow(bucket, p, changes);
    return true;
}

bool free_small(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                Changes& changes) noexcept {
    BucketSet& set = pool.series(entry.series());
    const blocks::BucketTraits& traits = set[entry.bucket()].traits;
    if (pool.is_checked()) {
        const bool ends =
            stated.agrees(entry.bucket()) && end_use(traits, p, entry, max_requested(pool, stated));
        if (!ends) [[unlikely]] {
            report_free(pool, p, stated);
            return false;
        }
        Cache* const cache = blocks::own_cache(pool.place);
        if (cache != nullptr && cache->push(entry.bucket(), p)) return false;
    } else if (stated.bucket == bucket_count ||
               (!stated.has_size() && !blocks::may_begin_block(p, entry)) ||
               (!set.is_first() && !begins_block(traits, p, entry))) [[unlikely]] {
        report_pointer(pool, p, find_small(pool, p, entry));
        return false;
    }
    // A wrong size is noticed when the block goes to its span.
    const bool has_size = stated.bucket < bucket_count;
    const unsigned bucket = has_size ? stated.bucket : entry.bucket();
    free_block(pool, has_size ? pool.buckets : set, bucket, p, changes);
    return true;
}

void free_block(PoolParts& pool, BucketSet& set, unsigned bucket, void* p,
                Changes& changes) noexcept {
    if (pool.is_shown_to_tool()) {
        const Stated stated{set.series() == 0 ? bucket : bucket_count,
                            {.bytes = set.block_bytes(bucket)}};
        if (!check_and_mark_freed(pool, p, stated)) [[unlikely]]
            return;
    }
    Cache* const cache = attach(pool, set);
    if (cache == nullptr) {
        deallocate_direct(set, bucket, p, changes);
    } else if (!cache->push(bucket, p)) {
        cache->push_slow(bucket, p, changes);
    }
}

Found find_small(PoolParts& pool, const void* p, PageEntry entry) noexcept {
    return find_in(pool, pool.series(entry.series()), entry.bucket(), p);
}

Found find_in(PoolParts& pool, BucketSet& set, unsigned number, const void* p) noexcept {
    blocks::Bucket& bucket = set[number];
    const blocks::BucketSpans::Finding found = bucket.spans.find(p);
    if (!found.in_span) return {};
    Found result{.what = found.block == p ? Found::What::block : Found::What::interior,
                 .block = found.block,
                 // A sized free never refers to a block of a finer size.
                 .bucket = set.series() == 0 ? number : bucket_count,
                 .usable = bucket.traits.block_bytes,
                 .requested = found.requested};
    if (pool.is_checked()) {
        if (!found.in_use) result.what = Found::What::freed;
        return result;
    }
    Cache* const cache = thread_registry().attached(set);
    const bool is_free = found.home || (set.is_marked() && !found.in_use);
    if (is_free || (cache != nullptr && cache->parks(number, found.block))) {
        result.what = Found::What::freed;
    }
    return result;
}

void* resize_small(PoolParts& pool, void* p, const Found& found, std::size_t bytes) noexcept {
    const PageEntry entry = pool.entry(p);
    return resize_in_bucket(pool, pool.series(entry.series())[entry.bucket()], p, found, bytes);
}

// A sized free computes the bucket from the size, so it stays the same.
void* resize_in_bucket(PoolParts& pool, blocks::Bucket& bucket, void* p, const Found& found,
                       std::size_t bytes) noexcept {
    if (bytes > found.usable || std::min(bucket_of(bytes), bucket_count) != found.bucket)
        return nullptr;
    if (base::checks_sizes(pool.options.checks)) begin_use(bucket.traits, p, bytes);
    return p;
}

std::size_t recorded_bytes_of_small(const void*, PageEntry entry) noexcept {
    return base::block_bytes(entry.series(), entry.bucket());
}

}  // namespace tensorpool::kinds
