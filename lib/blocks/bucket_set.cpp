#include "blocks/bucket_set.hpp"

#include <memory>
#include <mutex>
#include <new>

namespace tensorpool::blocks {

BucketSet::BucketSet(const char* name, States states, pages::PageHeap& heap,
                     pages::LargeBlocks& large, pages::RecordArena& records,
                     statistics::PoolCounters& counters, statistics::PoolTotals& totals) noexcept
    : first_(*this),
      number_(heap.pool_number()),
      // A pool whose number exceeds the tables works without caches.
      may_cache_(heap.pool_number() < detail::cached_pool_count),
      counters_(counters),
      large_blocks_(large),
      sources_{name, heap, records, magazines_, totals, states} {
    make_buckets();
}

BucketSet::BucketSet(BucketSet& first, unsigned series) noexcept
    : first_(first),
      number_(first.number() + series),
      may_cache_(first.may_cache_),
      counters_(first.counters_),
      large_blocks_(first.large_blocks_),
      sources_{first.name(),   first.heap(), first.records(), magazines_,
               first.totals(), States::none, series} {
    make_buckets();
    join_list();
}

BucketSet::BucketSet(BucketSet& first, Marked) noexcept
    : first_(first),
      number_(first.number_),
      may_cache_(first.may_cache_),
      counters_(first.counters_),
      large_blocks_(first.large_blocks_),
      sources_{first.name(),
               first.heap(),
               first.records(),
               magazines_,
               first.totals(),
               first.sources_.states,
               0,
               true} {
    make_buckets();
    join_list();
}

void BucketSet::join_list() noexcept {
    coarser_ = first_.finest_.load(std::memory_order_relaxed);
    while (!first_.finest_.compare_exchange_weak(coarser_, this, std::memory_order_release,
                                                 std::memory_order_relaxed)) {
    }
}

BucketSet::~BucketSet() {
    first_.finest_.store(coarser_, std::memory_order_relaxed);
    std::destroy_n(buckets_, detail::bucket_count);
}

void BucketSet::make_buckets() noexcept {
    magazines_.count_in(totals().record_bytes);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        new (&buckets_[bucket]) Bucket(bucket, sources_);
    }
}

void* BucketSet::allocate_direct(unsigned bucket, std::size_t requested_bytes,
                                 pages::SlowPath& path, CountAs count_as) noexcept {
    void* block = nullptr;
    const std::size_t grown_before = path.grown;
    if (buckets_[bucket].take(&block, 1, path) == 0) return nullptr;
    const std::size_t bytes = buckets_[bucket].block_bytes();
    const std::lock_guard guard(counters_.shared_mutex());
    detail::BucketCounters& counted = counters_.shared(series()).buckets[bucket];
    detail::add(counted.taken, 1);
    if (count_as == CountAs::miss) {
        detail::add(counted.misses, 1);
        detail::add(counted.system_misses, path.grown == grown_before ? 0 : 1);
    }
    detail::add(counted.requested_bytes, requested_bytes);
    detail::add(counted.allocations, 1);
    statistics::count_shared_allocation(buckets_[bucket].row(), bytes, requested_bytes);
    return block;
}

void BucketSet::deallocate_direct(unsigned bucket, void* block, pages::Changes& changes) noexcept {
    count_direct_free(bucket);
    buckets_[bucket].bring_home(&block, 1, changes);
}

void BucketSet::count_direct_free(unsigned bucket) noexcept {
    const std::lock_guard guard(counters_.shared_mutex());
    detail::BucketCounters& counted = counters_.shared(series()).buckets[bucket];
    detail::add_release(counted.deallocations, 1);
    detail::add_release(counted.returned, 1);
    statistics::count_shared_deallocation(buckets_[bucket].row(), buckets_[bucket].block_bytes());
}

void BucketSet::return_direct(unsigned bucket, void* const* blocks, unsigned count,
                              pages::Changes& changes) noexcept {
    {
        const std::lock_guard guard(counters_.shared_mutex());
        detail::add_release(counters_.shared(series()).buckets[bucket].returned, count);
    }
    buckets_[bucket].bring_home(blocks, count, changes);
}

void BucketSet::drain(Bucket::Magazines magazines, pages::Changes& changes) noexcept {
    for_each_series([&](BucketSet& set) {
        for (Bucket& bucket : set.buckets_) bucket.drain(magazines, changes);
    });
}

std::size_t BucketSet::drain_unneeded(pages::Changes& changes) noexcept {
    std::size_t bytes = 0;
    for_each_series([&](BucketSet& set) {
        for (Bucket& bucket : set.buckets_) bytes += bucket.drain_unneeded(changes);
    });
    return bytes;
}

void BucketSet::drop_free_pages() noexcept {
    for_each_series([](BucketSet& set) {
        for (Bucket& bucket : set.buckets_) bucket.drop_free_pages();
    });
}

void BucketSet::lock() noexcept {
    for (Bucket& bucket : buckets_) bucket.lock();
    magazines_.lock();
    if (!is_first()) return;
    quarantine_.lock();
    sources_.heap.lock();
    sources_.records.lock();
    counters_.lock();
}

void BucketSet::unlock() noexcept {
    if (is_first()) {
        counters_.unlock();
        sources_.records.unlock();
        sources_.heap.unlock();
        quarantine_.unlock();
    }
    magazines_.unlock();
    for (Bucket& bucket : buckets_) bucket.unlock();
}

}  // namespace tensorpool::blocks
