#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "blocks/bucket_set.hpp"
#include "blocks/thread_registry.hpp"
#include "limits/commit_budget.hpp"
#include "pages/address_space.hpp"
#include "pages/heap/page_heap.hpp"
#include "statistics/add_records.hpp"

namespace tensorpool::testing {

struct PoolSettings {
    blocks::States states = blocks::States::none;
    std::size_t max_capacity = 0;
};

/// The parts of a pool up to the layer `blocks`, and calls that take the same path as a pool's.
class PoolParts {
public:
    explicit PoolParts(const PoolSettings& settings = {})
        : heap(pages::address_space(), limits::commit_budget(), number_.value,
               heap_options(settings), totals),
          large(heap, totals),
          set("parts", settings.states, heap, large, records, counters, totals) {
        blocks::thread_registry().enter(set);
    }
    ~PoolParts() {
        set.for_each_series([](blocks::BucketSet& series) {
            blocks::thread_registry().leave(series);
            if (!series.is_first()) std::destroy_at(&series);
        });
    }
    PoolParts(const PoolParts&) = delete;
    PoolParts& operator=(const PoolParts&) = delete;

    void* allocate(unsigned bucket) {
        blocks::Cache* const cache = blocks::thread_registry().attach(set);
        if (cache == nullptr) {
            return blocks::allocate_direct(set, bucket, detail::bucket_bytes(bucket), path());
        }
        return allocate(*cache, bucket);
    }
    void deallocate(unsigned bucket, void* block) {
        blocks::Cache* const cache = blocks::thread_registry().attach(set);
        if (cache == nullptr) {
            blocks::deallocate_direct(set, bucket, block, path());
        } else {
            deallocate(*cache, bucket, block);
        }
    }

    static void* allocate(blocks::Cache& cache, unsigned bucket) {
        const std::size_t bytes = detail::bucket_bytes(bucket);
        if (void* const block = cache.pop(bucket, bytes)) return block;
        return cache.pop_slow(bucket, bytes, path());
    }
    static void deallocate(blocks::Cache& cache, unsigned bucket, void* block) {
        if (!cache.push(bucket, block)) cache.push_slow(bucket, block, path());
    }
    static std::vector<void*> allocate(blocks::Cache& cache, unsigned bucket, std::size_t count) {
        std::vector<void*> blocks(count);
        for (void*& block : blocks) block = allocate(cache, bucket);
        return blocks;
    }
    static void deallocate(blocks::Cache& cache, unsigned bucket,
                           const std::vector<void*>& blocks) {
        for (void* const block : blocks) deallocate(cache, bucket, block);
    }

    /// Allocates blocks without a cache.
    std::vector<void*> allocate_direct(unsigned bucket, std::size_t count) {
        std::vector<void*> blocks(count);
        for (void*& block : blocks) {
            block = blocks::allocate_direct(set, bucket, detail::bucket_bytes(bucket), path());
        }
        return blocks;
    }

    /// Takes blocks from spans; `bring_home` returns them. They are not counted.
    std::vector<void*> take(unsigned bucket, unsigned count) {
        std::vector<void*> blocks(count);
        blocks.resize(set[bucket].spans.take(blocks.data(), count, path()));
        return blocks;
    }
    void bring_home(unsigned bucket, const std::vector<void*>& blocks) {
        set[bucket].spans.bring_home(blocks.data(), static_cast<unsigned>(blocks.size()), path());
    }

    /// Returns all blocks that no thread holds to their spans.
    void drain() { set.drain(blocks::BucketDepot::Magazines::destroy, path()); }

    PoolStatistics sums() const { return counters.statistics(); }
    std::size_t in_use_bytes() const { return counters.in_use_bytes(); }
    std::size_t parked_bytes() const {
        std::size_t bytes = 0;
        for (const BucketStatistics& bucket : sums().buckets) bytes += bucket.parked_bytes;
        return bytes;
    }
    std::size_t capacity_of(unsigned bucket) const { return totals.bucket_capacity_bytes[bucket]; }
    std::size_t held_bytes() const { return totals.held_bytes; }
    /// A SlowPath for this thread's calls that ignore its content.
    static pages::SlowPath& path() {
        static thread_local pages::SlowPath path;
        return path;
    }

private:
    struct Number {
        ~Number() { blocks::PoolNumbers::give_back(value); }
        unsigned value = blocks::PoolNumbers::take();
    };

    static pages::HeapOptions heap_options(const PoolSettings& settings) {
        pages::HeapOptions options;
        options.max_capacity = settings.max_capacity;
        options.keep_records = settings.states != blocks::States::none;
        options.clock_ns = []() noexcept -> std::uint64_t { return 0; };
        return options;
    }

    Number number_;

public:
    statistics::OwnedRecord<statistics::PoolRecord> place = statistics::own_pool("parts", 0);
    statistics::PoolTotals& totals = place->totals;
    statistics::PoolCounters counters{place};
    pages::RecordArena records;
    pages::PageHeap heap;
    pages::LargeBlocks large;
    blocks::BucketSet set;
};

/// A cache like a thread's, but without a thread. Its blocks are freed with the pool.
struct LooseCache : blocks::Cache {
    explicit LooseCache(PoolParts& pool) { begin(pool.set, *pool.counters.take()); }

    unsigned capacity(unsigned bucket) const {
        return static_cast<unsigned>(loaded[bucket].limit - loaded[bucket].bottom);
    }
};

}  // namespace tensorpool::testing
