#include "blocks/direct_calls.hpp"

#include <mutex>

namespace tensorpool::blocks {
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
