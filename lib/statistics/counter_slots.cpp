#include "statistics/counter_slots.hpp"

#include <new>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::statistics {
namespace {

using detail::Counter;

std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}
// Pairs with the release store of `add_release`.
std::uint64_t read_first(const Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

constexpr unsigned slots_per_chunk = 16;

}  // namespace

struct CounterSlots::Chunk {
    Chunk* next;
    std::size_t bytes;
    CounterSlot slots[slots_per_chunk];
};

CounterSlots::~CounterSlots() {
    while (chunks_ != nullptr) {
        Chunk* const next = chunks_->next;
        platform::unmap(chunks_, chunks_->bytes);
        chunks_ = next;
    }
}

CounterSlot* CounterSlots::take() noexcept {
    const std::lock_guard guard(mutex_);
    CounterSlot* slot = first_free();
    if (slot == nullptr && add_chunk()) slot = first_free();
    if (slot == nullptr) return nullptr;
    slot->taken = true;
    taken_.fetch_add(1, std::memory_order_relaxed);
    return slot;
}

CounterSlot* CounterSlots::first_free() const noexcept {
    CounterSlot* slot = first_.load(std::memory_order_relaxed);
    while (slot != nullptr && slot->taken) slot = slot->next;
    return slot;
}

void CounterSlots::give_back(CounterSlot& slot) noexcept {
    const std::lock_guard guard(mutex_);
    slot.taken = false;
    taken_.fetch_sub(1, std::memory_order_relaxed);
}

bool CounterSlots::add_chunk() noexcept {
    const std::size_t bytes = base::align_up(sizeof(Chunk), platform::page_bytes());
    void* const memory = platform::map(bytes, platform::page_bytes());
    if (memory == nullptr) return false;
    Chunk* const chunk = new (memory) Chunk{.next = chunks_, .bytes = bytes, .slots = {}};
    chunks_ = chunk;
    bytes_held_ += bytes;
    for (CounterSlot& slot : chunk->slots) {
        slot.next = first_.load(std::memory_order_relaxed);
        first_.store(&slot, std::memory_order_release);
    }
    return true;
}

template <class Function>
void CounterSlots::for_each(Function function) const noexcept {
    function(shared_.counters);
    for (const CounterSlot* slot = first_.load(std::memory_order_acquire); slot != nullptr;
         slot = slot->next) {
        function(slot->counters);
    }
}

void CounterSlots::sum(PoolStatistics& statistics) const noexcept {
    std::uint64_t freed_blocks[detail::bucket_count] = {};
    std::uint64_t returned[detail::bucket_count] = {};
    std::uint64_t freed_large = 0;
    for_each([&](const detail::ThreadCounters& thread) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            freed_blocks[bucket] += read_first(thread.buckets[bucket].deallocations);
            returned[bucket] += read_first(thread.buckets[bucket].returned);
        }
        freed_large += read_first(thread.large.deallocated_bytes);
        statistics.large.deallocations += read_first(thread.large.deallocations);
    });
    std::uint64_t taken[detail::bucket_count] = {};
    for_each([&](const detail::ThreadCounters& thread) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            const detail::BucketCounters& counted = thread.buckets[bucket];
            BucketStatistics& sums = statistics.buckets[bucket];
            sums.allocations += read(counted.allocations);
            sums.requested_bytes += read(counted.requested_bytes);
            sums.cache_misses += read(counted.misses);
            sums.depot_hits += read(counted.depot_hits);
            taken[bucket] += read(counted.taken);
        }
        statistics.large.allocations += read(thread.large.allocations);
        statistics.large.requested_bytes += read(thread.large.requested_bytes);
        statistics.large.allocated_bytes += read(thread.large.allocated_bytes);
        statistics.large.cache_hits += read(thread.large.cache_hits);
    });
    const auto above = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        BucketStatistics& sums = statistics.buckets[bucket];
        sums.block_bytes = detail::bucket_bytes(bucket);
        sums.deallocations = freed_blocks[bucket];
        const std::uint64_t in_use = above(sums.allocations, sums.deallocations);
        const std::uint64_t out = above(taken[bucket], returned[bucket]);
        sums.in_use_bytes = in_use * sums.block_bytes;
        sums.parked_bytes = above(out, in_use) * sums.block_bytes;
        sums.allocated_bytes = sums.allocations * sums.block_bytes;
        sums.cache_hits = above(sums.allocations, sums.cache_misses);
    }
    statistics.large.in_use_bytes = above(statistics.large.allocated_bytes, freed_large);
    statistics.large.cache_misses =
        above(statistics.large.allocations, statistics.large.cache_hits);
}

std::uint64_t CounterSlots::in_use_bytes() const noexcept {
    std::uint64_t freed = 0;
    for_each([&](const detail::ThreadCounters& thread) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            freed +=
                read_first(thread.buckets[bucket].deallocations) * detail::bucket_bytes(bucket);
        }
        freed += read_first(thread.large.deallocated_bytes);
    });
    std::uint64_t allocated = 0;
    for_each([&](const detail::ThreadCounters& thread) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            allocated += read(thread.buckets[bucket].allocations) * detail::bucket_bytes(bucket);
        }
        allocated += read(thread.large.allocated_bytes);
    });
    return allocated > freed ? allocated - freed : 0;
}

std::uint64_t CounterSlots::allocations() const noexcept {
    std::uint64_t sum = 0;
    for_each([&](const detail::ThreadCounters& thread) {
        for (const detail::BucketCounters& bucket : thread.buckets) sum += read(bucket.allocations);
        sum += read(thread.large.allocations);
    });
    return sum;
}

std::uint64_t CounterSlots::deallocations() const noexcept {
    std::uint64_t sum = 0;
    for_each([&](const detail::ThreadCounters& thread) {
        for (const detail::BucketCounters& bucket : thread.buckets)
            sum += read(bucket.deallocations);
        sum += read(thread.large.deallocations);
    });
    return sum;
}

void CounterSlots::lock() noexcept {
    mutex_.lock();
    shared_mutex_.lock();
}

void CounterSlots::unlock() noexcept {
    shared_mutex_.unlock();
    mutex_.unlock();
}

}  // namespace tensorpool::statistics
