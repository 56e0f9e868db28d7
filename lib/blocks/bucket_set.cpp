#include "blocks/bucket_set.hpp"

#include <memory>

namespace tensorpool::blocks {

Quarantine::~Quarantine() {
    if (queue_ != nullptr) platform::unmap(queue_, max_blocks * sizeof(Block));
}

bool Quarantine::make_queue() noexcept {
    if (queue_ != nullptr) [[likely]]
        return true;
    void* const memory = platform::map(max_blocks * sizeof(Block), platform::page_bytes());
    queue_ = static_cast<Block*>(memory);
    return queue_ != nullptr;
}

// The queue always has room: its limit is reached, and some blocks are taken, when it is full.
unsigned Quarantine::exchange(Block added, Block* taken, unsigned max_count) noexcept {
    taken[0] = added;
    if (added.bytes > max_bytes_) return 1;
    const std::lock_guard guard(mutex_);
    if (!make_queue()) return 1;
    queue_[end_++ % max_blocks] = added;
    bytes_ += added.bytes;
    unsigned count = 0;
    if (holds_more_than(max_bytes_, max_blocks - 1)) {
        const std::size_t kept_bytes = max_bytes_ / 16 * 15;
        while (count != max_count && holds_more_than(kept_bytes, max_blocks / 16 * 15)) {
            taken[count++] = pop();
        }
    }
    publish();
    return count;
}

unsigned Quarantine::take(Block* blocks, unsigned max_count) noexcept {
    const std::lock_guard guard(mutex_);
    unsigned count = 0;
    while (count < max_count && begin_ != end_) blocks[count++] = pop();
    if (count != 0) publish();
    return count;
}

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

std::size_t BucketSet::drain_unneeded(pages::Changes& changes) noexcept {
    std::size_t bytes = 0;
    for_each_series([&](BucketSet& set) {
        for (Bucket& bucket : set.buckets_) bytes += bucket.depot.drain_unneeded(changes);
    });
    return bytes;
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

namespace {

detail::BucketCounters& counted(BucketSet& set, unsigned bucket) noexcept {
    return set.counters().shared(set.series()).buckets[bucket];
}

}  // namespace

void* allocate_direct(BucketSet& set, unsigned bucket, std::size_t requested_bytes,
                      pages::SlowPath& path, CountAs count_as) noexcept {
    void* block = nullptr;
    const std::size_t grown_before = path.grown;
    if (set[bucket].spans.take(&block, 1, path) == 0) return nullptr;
    const BucketTraits& traits = set[bucket].traits;
    const std::lock_guard guard(set.counters().shared_mutex());
    detail::BucketCounters& counters = counted(set, bucket);
    detail::add(counters.taken, 1);
    if (count_as == CountAs::miss) {
        detail::add(counters.misses, 1);
        detail::add(counters.system_misses, path.grown == grown_before ? 0 : 1);
    }
    detail::add(counters.requested_bytes, requested_bytes);
    detail::add(counters.allocations, 1);
    statistics::count_shared_allocation(traits.row(), traits.block_bytes, requested_bytes);
    return block;
}

void deallocate_direct(BucketSet& set, unsigned bucket, void* block,
                       pages::Changes& changes) noexcept {
    const BucketTraits& traits = set[bucket].traits;
    {
        const std::lock_guard guard(set.counters().shared_mutex());
        detail::BucketCounters& counters = counted(set, bucket);
        detail::add_release(counters.deallocations, 1);
        detail::add_release(counters.returned, 1);
        statistics::count_shared_deallocation(traits.row(), traits.block_bytes);
    }
    set[bucket].spans.bring_home(&block, 1, changes);
}

void return_direct(BucketSet& set, unsigned bucket, void* const* blocks, unsigned count,
                   pages::Changes& changes) noexcept {
    {
        const std::lock_guard guard(set.counters().shared_mutex());
        detail::add_release(counted(set, bucket).returned, count);
    }
    set[bucket].spans.bring_home(blocks, count, changes);
}

}  // namespace tensorpool::blocks
