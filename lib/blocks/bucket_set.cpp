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

BucketSet::BucketSet(BucketSet& first, unsigned series, HasMarks has_marks) noexcept
    : first_(first),
      number_(first.number_ + series),
      may_cache_(first.may_cache_),
      counters_(first.counters_),
      large_blocks_(first.large_blocks_),
      sources_{first.name(),   first.heap(),          first.records(), magazines_,
               first.totals(), first.sources_.states, series,          has_marks == HasMarks::yes} {
    make_buckets();
    coarser_ = shared().finest.load(std::memory_order_relaxed);
    while (!shared().finest.compare_exchange_weak(coarser_, this, std::memory_order_release,
                                                  std::memory_order_relaxed)) {
    }
}

BucketSet::~BucketSet() {
    shared().finest.store(coarser_, std::memory_order_relaxed);
    std::destroy_n(buckets_, detail::bucket_count);
}

void BucketSet::make_buckets() noexcept {
    magazines_.count_in(totals().record_bytes);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        new (&buckets_[bucket]) Bucket(bucket, sources_);
    }
}

void BucketSet::drain(BucketDepot::Magazines magazines, pages::Changes& changes) noexcept {
    for_each_series([&](BucketSet& set) {
        for (Bucket& bucket : set.buckets_) bucket.depot.drain(magazines, changes);
    });
}

std::size_t BucketSet::drain_unneeded(pages::Changes& changes) noexcept {
    std::size_t bytes = 0;
    for_each_series([&](BucketSet& set) {
        for (Bucket& bucket : set.buckets_) bytes += bucket.depot.drain_unneeded(changes);
    });
    return bytes;
}

void BucketSet::drop_free_pages() noexcept {
    for_each_series([](BucketSet& set) {
        for (Bucket& bucket : set.buckets_) bucket.spans.drop_free_pages();
    });
}

void BucketSet::lock() noexcept {
    for (Bucket& bucket : buckets_) bucket.spans.lock();
    magazines_.lock();
    if (!is_first()) return;
    shared_.quarantine.lock();
    sources_.heap.lock();
    sources_.records.lock();
    counters_.lock();
}

void BucketSet::unlock() noexcept {
    if (is_first()) {
        counters_.unlock();
        sources_.records.unlock();
        sources_.heap.unlock();
        shared_.quarantine.unlock();
    }
    magazines_.unlock();
    for (Bucket& bucket : buckets_) bucket.spans.unlock();
}

}  // namespace tensorpool::blocks
