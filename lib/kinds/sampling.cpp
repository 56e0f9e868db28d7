// The heap profile: which allocations of a thread are sampled, and what marks them.

#include "kinds/sampling.hpp"

#include <algorithm>

#include "blocks/thread_registry.hpp"
#include "kinds/guarded_kind.hpp"
#include "platform/platform.hpp"
#include "watch/guards/guarded_block.hpp"
#include "watch/profile/profile_interval.hpp"

namespace tensorpool::kinds {
namespace {

using base::BlockMark;
using watch::ProfiledBlock;
using watch::ProfilePace;
using watch::SampleDistances;

// What took longer was disturbed: the first stack of a process reads the tables of its files, which
// takes milliseconds.
constexpr std::uint64_t max_cost_ns = 20'000;
// What comes later: the end of a sample, and for a small block that it lies elsewhere than the one
// that would have been used again, so its first touch misses the processor's cache, or faults
// (perf/results/profile.md).
constexpr std::uint64_t later_cost_ns = 50;
constexpr std::uint64_t elsewhere_cost_ns = 1'500;
constexpr std::uint64_t missed_bytes_per_ns = 8;

/// The mark of a block whose sample was lost: each block in use of the marked set has one.
struct LostSample final : BlockMark {
    void on_free(std::size_t) noexcept override {}
    BlockMark* charge() noexcept override { return nullptr; }
};
constinit LostSample lost_sample;

constexpr std::int64_t as_distance(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>(bytes);
}

// Returns the mean of the distance that ends with this allocation; 0 if none does.
double take_sample(PoolParts& pool, blocks::Cache& cache, std::size_t bytes) noexcept {
    std::int64_t& left = cache.distances.to_sample;
    ProfilePace& pace = cache.profile_pace;
    if (const double mean = pace.take_owed(bytes)) return mean;
    if (left >= 0) return 0;
    const std::uint64_t interval = is_profiled(pool) ? watch::profile_interval() : 0;
    if (interval == 0) {
        pace.stop();
        left = is_profiled(pool) ? watch::profile_look_again_bytes : SampleDistances::never;
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

ProfiledBlock* begin_profile(blocks::Cache& cache, const void* p, std::size_t bytes,
                             const Sampled& sampled) noexcept {
    ProfiledBlock* const block = watch::profiled_blocks().begin(p, bytes, sampled.mean);
    const std::uint64_t took = platform::monotonic_clock_ns() - sampled.begun_ns;
    const std::uint64_t later = bytes > largest_block_bytes
                                    ? later_cost_ns
                                    : elsewhere_cost_ns + bytes / missed_bytes_per_ns;
    cache.profile_pace.count(std::min(took, max_cost_ns) + later);
    return block;
}

void profile_large(PoolParts& pool, blocks::Cache& cache, const void* p, std::size_t bytes,
                   const Sampled& sampled) noexcept {
    ProfiledBlock* const block = begin_profile(cache, p, bytes, sampled);
    if (block == nullptr) return;
    Span& span = *pool.entry(p).span();
    block->covered = span.mark();
    mark_large(pool, span, *block);
}

}  // namespace

bool is_profiled(const PoolParts& pool) noexcept {
    return !pool.is_checked() && !platform::has_memory_tool();
}

// If the countdown is negative, the inline path has subtracted the request's bytes. Otherwise the
// path that serves the request subtracts them, so they are added to the next distance.
Sampled sample_if_due(PoolParts& pool, blocks::Cache& cache, const Request& request) noexcept {
    const std::size_t bytes = request.bytes;
    if (cache.bytes_to_sample >= as_distance(bytes)) [[likely]]
        return {};
    if (cache.bytes_to_sample >= 0) cache.bytes_to_sample -= as_distance(bytes);
    cache.distances.settle(cache.bytes_to_sample);
    Sampled sampled{.begun_ns = platform::monotonic_clock_ns()};
    sampled.mean = take_sample(pool, cache, bytes);
    sampled.block = guard_if_due(pool, cache, bytes, request.alignment);
    cache.bytes_to_sample = cache.distances.arm();
    if (sampled.block == nullptr) {
        cache.bytes_to_sample += as_distance(bytes);
    } else if (sampled.mean != 0) {
        watch::guarded_block(pool.entry(sampled.block))->mark =
            begin_profile(cache, sampled.block, bytes, sampled);
    }
    return sampled;
}

void owe_sample(blocks::Cache& cache, std::size_t bytes, double mean) noexcept {
    cache.profile_pace.owe(bytes, mean);
    cache.bytes_to_sample = cache.distances.armed = 0;
}

void profile_marked(blocks::Cache& cache, pages::BlockStates::Mark& mark, const void* p,
                    std::size_t bytes, const Sampled& sampled) noexcept {
    BlockMark* const earlier = mark.load(std::memory_order_relaxed);
    ProfiledBlock* const block = begin_profile(cache, p, bytes, sampled);
    if (block != nullptr) block->covered = earlier;
    BlockMark* const lost = earlier == nullptr ? &lost_sample : earlier;
    mark.store(block != nullptr ? block : lost, std::memory_order_relaxed);
}

void* sample_pages(PoolParts& pool, const Request& request, SlowPath& path,
                   AllocatePages allocate) noexcept {
    const std::size_t bytes = request.bytes;
    blocks::Cache* const cache = blocks::thread_registry().attach(pool.buckets);
    if (cache == nullptr) return allocate(pool, cache, request, path);
    const Sampled sampled = sample_if_due(pool, *cache, request);
    if (sampled.block != nullptr) return sampled.block;
    void* const block = allocate(pool, cache, request, path);
    if (sampled.mean == 0) [[likely]]
        return block;
    if (block != nullptr) {
        profile_large(pool, *cache, block, bytes, sampled);
    } else {
        owe_sample(*cache, bytes, sampled.mean);
    }
    return block;
}

void profile_resized(PoolParts& pool, Span& span, std::size_t bytes) noexcept {
    if (span.is_marked) span.take_mark().on_free(span.bytes());
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
    profile_large(pool, *cache, pool.large.address_of(span), bytes, sampled);
}

// The mark is set when the block's address, which the sample needs, is known.
void* allocate_sampled(PoolParts& pool, blocks::Cache& cache, const Request& request,
                       SlowPath& path) noexcept {
    const Sampled sampled = sample_if_due(pool, cache, request);
    if (sampled.block != nullptr || sampled.mean == 0) return sampled.block;
    const std::size_t bytes = request.bytes;
    const unsigned bucket = bucket_for(bytes, request.alignment);
    void* const block = take_marked(pool, bucket, bytes, blocks::BucketSet::CountAs::hit, path);
    if (block == nullptr) {
        watch::profiled_blocks().count_lost();
        return nullptr;
    }
    cache.bytes_to_sample -= as_distance(bytes);
    profile_marked(cache, (*pool.buckets.marked)[bucket].mark_of(block), block, bytes, sampled);
    return block;
}

}  // namespace tensorpool::kinds
