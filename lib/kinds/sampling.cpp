// The heap profile: which allocations of a thread are sampled, and what marks them.

#include "kinds/sampling.hpp"

#include <algorithm>

#include "blocks/block_charge.hpp"
#include "blocks/thread_registry.hpp"
#include "kinds/guarded_kind.hpp"
#include "kinds/large_kind.hpp"
#include "kinds/reports.hpp"
#include "pages/marked/guarded_block.hpp"
#include "pages/marked/sampled_area.hpp"
#include "platform/platform.hpp"
#include "statistics/profile/profile_interval.hpp"

namespace tensorpool::kinds {
namespace {

using blocks::ProfilePace;
using blocks::SampleDistances;
using pages::SampledArea;
using pages::SampledBlock;
using statistics::ProfiledBlock;

// What took longer was disturbed: the first stack of a process reads the tables of its files, which
// takes milliseconds.
constexpr std::uint64_t max_cost_ns = 20'000;
// What comes later: the end of a sample, and for a small block that it lies elsewhere than the one
// that would have been used again, so its first touch misses the processor's cache, or faults
// (perf/results/profile.md).
constexpr std::uint64_t later_cost_ns = 50;
constexpr std::uint64_t elsewhere_cost_ns = 1'500;
constexpr std::uint64_t missed_bytes_per_ns = 8;

constexpr std::int64_t as_distance(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>(bytes);
}

/// What is decided when the countdown of a thread's cache does not suffice for a request.
struct Sampled {
    void* block = nullptr;  // a guarded block that serves it
    double mean = 0;        // if the heap profile samples it, at this mean distance; otherwise 0
    std::uint64_t begun_ns = 0;  // when that was decided
};

// Returns the mean of the distance that ends with this allocation; 0 if none does.
double take_sample(PoolParts& pool, blocks::Cache& cache, std::size_t bytes) noexcept {
    std::int64_t& left = cache.distances.to_sample;
    ProfilePace& pace = cache.profile_pace;
    if (const double mean = pace.take_owed(bytes)) return mean;
    if (left >= 0) return 0;
    const std::uint64_t interval = is_profiled(pool) ? statistics::profile_interval() : 0;
    if (interval == 0) {
        pace.stop();
        left = is_profiled(pool) ? statistics::profile_look_again_bytes : SampleDistances::never;
        return 0;
    }
    if (!pace.is_on()) {
        const std::uint64_t seed = platform::monotonic_clock_ns();
        left += pace.begin(reinterpret_cast<std::uintptr_t>(&cache) ^ seed, interval);
        if (left >= 0) return 0;
    }
    const double mean = pace.mean();
    left = pace.next(pace.needs_time() ? platform::thread_time_ns() : 0, left, interval);
    return mean;
}

// The request was refused, and is tried again after free memory was gathered.
void owe_sample(blocks::Cache& cache, std::size_t bytes, double mean) noexcept {
    cache.profile_pace.owe(bytes, mean);
    cache.bytes_to_sample = cache.distances.armed = 0;
}

ProfiledBlock* begin_profile(PoolParts& pool, blocks::Cache& cache, const void* p,
                             std::size_t bytes, const Sampled& sampled) noexcept {
    ProfiledBlock* const block =
        statistics::profiled_blocks().begin(pool.number(), p, bytes, sampled.mean);
    const std::uint64_t took = platform::monotonic_clock_ns() - sampled.begun_ns;
    const std::uint64_t later = bytes > largest_block_bytes
                                    ? later_cost_ns
                                    : elsewhere_cost_ns + bytes / missed_bytes_per_ns;
    cache.profile_pace.count(std::min(took, max_cost_ns) + later);
    if (block != nullptr) pool.profiled_in_use.fetch_add(1, std::memory_order_relaxed);
    return block;
}

void profile_large(PoolParts& pool, blocks::Cache& cache, void* p, std::size_t bytes,
                   const Sampled& sampled) noexcept {
    ProfiledBlock* const block = begin_profile(pool, cache, p, bytes, sampled);
    if (block != nullptr) pool.entry(p).span()->set_profiled(*block);
}

// Called when the countdown of a thread's cache does not suffice for a request. If it is negative,
// the inline path has subtracted the request's bytes. Otherwise the path that serves the request
// subtracts them, so they are added to the next distance.
Sampled sample(PoolParts& pool, blocks::Cache& cache, std::size_t bytes,
               std::size_t alignment) noexcept {
    if (cache.bytes_to_sample >= 0) cache.bytes_to_sample -= as_distance(bytes);
    cache.distances.settle(cache.bytes_to_sample);
    Sampled sampled{.begun_ns = platform::monotonic_clock_ns()};
    sampled.mean = take_sample(pool, cache, bytes);
    sampled.block = guard_if_due(pool, cache, bytes, alignment);
    cache.bytes_to_sample = cache.distances.arm();
    if (sampled.block == nullptr) {
        cache.bytes_to_sample += as_distance(bytes);
    } else if (sampled.mean != 0) {
        pool.entry(sampled.block).guarded()->profiled =
            begin_profile(pool, cache, sampled.block, bytes, sampled);
    }
    return sampled;
}

// The pages count as capacity of the bucket. Free pages of the pool make way for them.
SampledBlock take_sampled(PoolParts& pool, blocks::BucketSet& set, unsigned bucket,
                          pages::SlowPath& path) noexcept {
    const base::BlockSize size{static_cast<std::uint8_t>(set.series()),
                               static_cast<std::uint8_t>(bucket)};
    SampledArea& area = pages::sampled_area();
    const SampledBlock open = area.take(pool.number(), size);
    if (open.pages != nullptr) return open;
    const std::size_t bytes = SampledArea::bytes_for(size);
    if (!pool.heap.charge_outside(bytes)) {
        pool.heap.give_back(bytes, path);
        if (!pool.heap.charge_outside(bytes)) return {};
    }
    const SampledBlock block = area.open(pool.number(), size);
    if (block.pages == nullptr) {
        pool.heap.refund_outside(bytes);
        return {};
    }
    pool.totals().bucket_capacity_bytes[set[bucket].row()].fetch_add(bytes,
                                                                     std::memory_order_relaxed);
    pool.has_sampled.store(true, std::memory_order_relaxed);
    return block;
}

}  // namespace

bool is_profiled(const PoolParts& pool) noexcept {
    return !pool.is_checked() && !platform::has_memory_tool();
}

void* sample_pages(PoolParts& pool, const Request& request, SlowPath& path,
                   AllocatePages allocate) noexcept {
    const std::size_t bytes = request.bytes;
    blocks::Cache* const cache = blocks::thread_registry().attach(pool.buckets);
    if (cache == nullptr || cache->bytes_to_sample >= as_distance(bytes)) [[likely]]
        return allocate(pool, cache, request, path);
    const Sampled sampled = sample(pool, *cache, bytes, request.alignment);
    if (sampled.block != nullptr) return sampled.block;
    void* const block = allocate(pool, cache, request, path);
    if (sampled.mean == 0) return block;
    if (block != nullptr) {
        profile_large(pool, *cache, block, bytes, sampled);
    } else {
        owe_sample(*cache, bytes, sampled.mean);
    }
    return block;
}

void end_profile(PoolParts& pool, ProfiledBlock& block) noexcept {
    pool.profiled_in_use.fetch_sub(1, std::memory_order_relaxed);
    statistics::profiled_blocks().end(block);
}

bool free_marked(PoolParts& pool, Span& span, Changes& changes) noexcept {
    if (span.sampled) end_profile(pool, span.take_profiled());
    const PagesCharge charge(span);
    return free_large(pool, span, changes);
}

// A block that was lengthened counts as a new one.
void profile_resized(PoolParts& pool, Span& span, std::size_t bytes) noexcept {
    if (span.sampled) end_profile(pool, span.take_profiled());
    blocks::Cache* const cache = blocks::own_cache(pool.place);
    if (cache == nullptr) return;
    cache->bytes_to_sample -= as_distance(bytes);
    if (cache->bytes_to_sample >= 0) [[likely]]
        return;
    Sampled sampled{.begun_ns = platform::monotonic_clock_ns()};
    cache->distances.settle(cache->bytes_to_sample);
    sampled.mean = take_sample(pool, *cache, bytes);
    // A block that exists cannot be guarded.
    cache->distances.to_guard = std::max<std::int64_t>(cache->distances.to_guard, 0);
    cache->bytes_to_sample = cache->distances.arm();
    if (sampled.mean == 0) return;
    profile_large(pool, *cache, pool.heap.space().address_of(span.first_page), bytes, sampled);
}

// A small block that is sampled lies outside of its bucket's spans but is counted by the bucket.
void* allocate_sampled(PoolParts& pool, blocks::BucketSet& set, blocks::Cache& cache,
                       unsigned bucket, std::size_t bytes, std::size_t alignment,
                       pages::SlowPath& path) noexcept {
    const Sampled sampled = sample(pool, cache, bytes, alignment);
    if (sampled.block != nullptr || sampled.mean == 0) return sampled.block;
    const SampledBlock block = take_sampled(pool, set, bucket, path);
    if (block.pages == nullptr) {
        statistics::profiled_blocks().count_lost();
        return nullptr;
    }
    block.profiled() = begin_profile(pool, cache, block.address(), bytes, sampled);
    if (block.profiled() != nullptr && set.is_charged()) block.profiled()->charge = &set.charge();
    cache.bytes_to_sample -= as_distance(bytes);
    pool.totals().hold_in(set[bucket].row(), set.block_bytes(bucket));
    cache.count_outside(bucket, bytes);
    statistics::look_at_scopes();
    return block.address();
}

bool SampledKind::free(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                       Changes&) const noexcept {
    const SampledBlock block = SampledArea::find(p);
    const bool is_ours = block.pages != nullptr && p == block.address();
    const base::BlockSize size = entry.sampled()->size.load(std::memory_order_relaxed);
    const SampledArea::Freed freed =
        is_ours ? pages::sampled_area().free(block) : SampledArea::Freed();
    if (!freed.was_in_use) {
        report_free(pool, p, stated);
        return false;
    }
    void* const charge = freed.profiled == nullptr ? nullptr : freed.profiled->charge;
    if (freed.profiled != nullptr) end_profile(pool, *freed.profiled);
    blocks::BucketSet& set = pool.series(size.series);
    if (blocks::Cache* const cache = attach(pool, set)) {
        cache->count_outside_free(size.bucket);
    } else {
        set.count_direct_free(size.bucket);
    }
    const unsigned row = set[size.bucket].row();
    pool.totals().let_go_from(row, set.block_bytes(size.bucket));
    if (freed.closed_bytes != 0) {
        pool.totals().bucket_capacity_bytes[row].fetch_sub(freed.closed_bytes,
                                                           std::memory_order_relaxed);
        pool.heap.refund_outside(freed.closed_bytes);
    }
    if (charge != nullptr)
        refund(*static_cast<blocks::BlockCharge*>(charge), set.block_bytes(size.bucket));
    return false;
}

void* SampledKind::resize(PoolParts&, void* p, const Found& found,
                          std::size_t bytes) const noexcept {
    const bool fits = bytes <= found.usable && bucket_of(bytes) == found.bucket;
    return fits ? p : nullptr;
}

std::size_t SampledKind::recorded_bytes(const void*, PageEntry entry) const noexcept {
    return entry.sampled()->block_bytes();
}

// Called before the pool is destroyed.
void forget_profile(PoolParts& pool) noexcept {
    if (pool.profiled_in_use.load(std::memory_order_relaxed) != 0) {
        statistics::profiled_blocks().forget_pool(pool.number());
    }
    if (pool.has_sampled.load(std::memory_order_relaxed)) {
        pool.heap.refund_outside(pages::sampled_area().forget_pool(pool.number()));
    }
}

Found SampledKind::find(PoolParts&, const void* p, PageEntry) const noexcept {
    const SampledBlock block = SampledArea::find(p);
    if (block.pages == nullptr) return {};
    const base::BlockSize size = block.pages->size.load(std::memory_order_relaxed);
    Found finding{.what = block.address() == p ? Found::What::block : Found::What::interior,
                  .block = block.address(),
                  // A sized free never refers to a block of a finer size.
                  .bucket = size.series == 0 ? size.bucket : bucket_count,
                  .usable = block.pages->block_bytes(),
                  .requested = 0};
    if (!block.is_in_use()) finding.what = Found::What::freed;
    return finding;
}

}  // namespace tensorpool::kinds
