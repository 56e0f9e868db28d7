#include "statistics/reader/segment_threads.hpp"

#include <algorithm>

#include "statistics/sums/pool_statistics.hpp"

namespace tensorpool::statistics {
namespace {

std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

void add(ThreadStatistics& thread, const detail::ThreadCounters& counted) noexcept {
    for (const detail::BucketCounters& bucket : counted.buckets) {
        thread.deallocations += read(bucket.deallocations);
        thread.allocations += read(bucket.allocations);
    }
    thread.deallocations += read(counted.large.deallocations);
    thread.allocations += read(counted.large.allocations);
    thread.parked_bytes += parked_bytes_of(counted);
}

}  // namespace

SlotsByPool::SlotsByPool(const SegmentImage& image) {
    std::vector<std::pair<std::uint64_t, std::size_t>> found;
    for (std::size_t place = 0; place < image.records<SlotRecord>().size(); ++place) {
        const std::uint64_t pool = read(image.records<SlotRecord>()[place].pool);
        if (pool != 0) found.emplace_back(pool, place);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [pool, place] : found) {
        pools_.push_back(pool);
        places_.push_back(place);
    }
    taken_.resize(places_.size());
}

PoolSlots SlotsByPool::take(std::uint64_t pool) noexcept {
    const auto [first, last] = std::equal_range(pools_.begin(), pools_.end(), pool);
    const auto begin = static_cast<std::size_t>(first - pools_.begin());
    if (first == last || taken_[begin]) return {};
    taken_[begin] = true;
    return PoolSlots(places_).subspan(begin, static_cast<std::size_t>(last - first));
}

void add_threads(std::vector<ThreadStatistics>& threads, const SegmentImage& image,
                 const PoolRecord& pool, PoolSlots slots) {
    ThreadStatistics others;
    others.pool = read(pool.id);
    add(others, pool.shared);
    add(others, pool.left_out);
    for (const std::size_t place : slots) {
        const SlotRecord& slot = image.records<SlotRecord>()[place];
        ThreadStatistics thread;
        thread.thread = read(slot.thread);
        thread.pool = others.pool;
        if (thread.thread == 0) {
            add(others, slot.counters);
        } else {
            add(thread, slot.counters);
            threads.push_back(std::move(thread));
        }
    }
    if (others.allocations + others.deallocations != 0) threads.push_back(std::move(others));
}

}  // namespace tensorpool::statistics
