// The heap profile: which allocations of a thread are sampled, and what marks them.

#include <algorithm>

#include "pages/marked/guarded_block.hpp"
#include "pages/marked/sampled_area.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/pool.hpp"
#include "statistics/profile/profile_interval.hpp"
#include "statistics/profile/profiled_blocks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
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

}  // namespace

// A tool that watches memory sees every call, so all of them take the slow path.
bool Pool::is_profiled() const noexcept {
    return !checked() && !platform::has_memory_tool();
}

// Called when the countdown of a thread's cache does not suffice for a request. If it is negative,
// the inline path has subtracted the request's bytes. Otherwise the path that serves the request
// subtracts them, so they are added to the next distance.
Pool::Sampled Pool::sample(blocks::Cache& cache, std::size_t bytes,
                           std::size_t alignment) noexcept {
    if (cache.bytes_to_sample >= 0) cache.bytes_to_sample -= as_distance(bytes);
    cache.distances.settle(cache.bytes_to_sample);
    Sampled sampled{.begun_ns = platform::monotonic_clock_ns()};
    sampled.mean = take_sample(cache, bytes);
    sampled.block = guard_if_due(cache, bytes, alignment);
    cache.bytes_to_sample = cache.distances.arm();
    if (sampled.block == nullptr) {
        cache.bytes_to_sample += as_distance(bytes);
    } else if (sampled.mean != 0) {
        heap_.space().map().at(sampled.block).guarded()->profiled =
            begin_profile(cache, sampled.block, bytes, sampled);
    }
    return sampled;
}

// Returns the mean of the distance that ends with this allocation; 0 if none does.
double Pool::take_sample(blocks::Cache& cache, std::size_t bytes) noexcept {
    std::int64_t& left = cache.distances.to_sample;
    ProfilePace& pace = cache.profile_pace;
    if (const double mean = pace.take_owed(bytes)) return mean;
    if (left >= 0) return 0;
    const std::uint64_t interval = is_profiled() ? statistics::profile_interval() : 0;
    if (interval == 0) {
        pace.stop();
        left = is_profiled() ? statistics::profile_look_again_bytes : SampleDistances::never;
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
void Pool::owe_sample(blocks::Cache& cache, std::size_t bytes, double mean) noexcept {
    cache.profile_pace.owe(bytes, mean);
    cache.bytes_to_sample = cache.distances.armed = 0;
}

ProfiledBlock* Pool::begin_profile(blocks::Cache& cache, const void* p, std::size_t bytes,
                                   const Sampled& sampled) noexcept {
    ProfiledBlock* const block =
        statistics::profiled_blocks().begin(heap_.pool_number(), p, bytes, sampled.mean);
    const std::uint64_t took = platform::monotonic_clock_ns() - sampled.begun_ns;
    const std::uint64_t later = bytes > largest_block_bytes
                                    ? later_cost_ns
                                    : elsewhere_cost_ns + bytes / missed_bytes_per_ns;
    cache.profile_pace.count(std::min(took, max_cost_ns) + later);
    if (block != nullptr) profiled_in_use_.fetch_add(1, std::memory_order_relaxed);
    return block;
}

void Pool::end_profile(ProfiledBlock& block) noexcept {
    profiled_in_use_.fetch_sub(1, std::memory_order_relaxed);
    statistics::profiled_blocks().end(block);
}

void Pool::profile_large(blocks::Cache& cache, void* p, std::size_t bytes,
                         const Sampled& sampled) noexcept {
    ProfiledBlock* const block = begin_profile(cache, p, bytes, sampled);
    if (block != nullptr) heap_.space().map().at(p).span()->set_profiled(*block);
}

void Pool::free_marked(pages::Span& span) noexcept {
    if (span.sampled) end_profile(span.take_profiled());
    blocks::BlockCharge* const charge = span.charged ? &span.take_charge() : nullptr;
    const std::size_t bytes = span.bytes();
    free_large(span);
    if (charge != nullptr) refund(*charge, bytes);
}

// A block that was lengthened counts as a new one.
void Pool::profile_resized(pages::Span& span, std::size_t bytes) noexcept {
    if (span.sampled) end_profile(span.take_profiled());
    blocks::Cache* const cache = blocks::own_cache(place_);
    if (cache == nullptr) return;
    cache->bytes_to_sample -= as_distance(bytes);
    if (cache->bytes_to_sample >= 0) [[likely]]
        return;
    Sampled sampled{.begun_ns = platform::monotonic_clock_ns()};
    cache->distances.settle(cache->bytes_to_sample);
    sampled.mean = take_sample(*cache, bytes);
    // A block that exists cannot be guarded.
    cache->distances.to_guard = std::max<std::int64_t>(cache->distances.to_guard, 0);
    cache->bytes_to_sample = cache->distances.arm();
    if (sampled.mean == 0) return;
    profile_large(*cache, heap_.space().address_of(span.first_page), bytes, sampled);
}

// A small block that is sampled lies outside of its bucket's spans but is counted by the bucket.
void* Pool::allocate_sampled(blocks::BucketSet& set, blocks::Cache& cache, unsigned bucket,
                             std::size_t bytes, std::size_t alignment,
                             pages::SlowPath& path) noexcept {
    const Sampled sampled = sample(cache, bytes, alignment);
    if (sampled.block != nullptr || sampled.mean == 0) return sampled.block;
    const SampledBlock block = take_sampled(set, bucket, path);
    if (block.pages == nullptr) {
        statistics::profiled_blocks().count_lost();
        return nullptr;
    }
    block.profiled() = begin_profile(cache, block.address(), bytes, sampled);
    if (block.profiled() != nullptr && set.is_charged()) block.profiled()->charge = &set.charge();
    cache.bytes_to_sample -= as_distance(bytes);
    record_->totals.hold_in(set[bucket].row(), set.block_bytes(bucket));
    cache.count_outside(bucket, bytes);
    statistics::look_at_scopes();
    return block.address();
}

// The pages count as capacity of the bucket. Free pages of the pool make way for them.
SampledBlock Pool::take_sampled(blocks::BucketSet& set, unsigned bucket,
                                pages::SlowPath& path) noexcept {
    const base::BlockSize size{static_cast<std::uint8_t>(set.series()),
                               static_cast<std::uint8_t>(bucket)};
    SampledArea& area = pages::sampled_area();
    const unsigned pool = heap_.pool_number();
    const SampledBlock open = area.take(pool, size);
    if (open.pages != nullptr) return open;
    const std::size_t bytes = SampledArea::bytes_for(size);
    if (!heap_.charge_outside(bytes)) {
        heap_.give_back(bytes, path);
        if (!heap_.charge_outside(bytes)) return {};
    }
    const SampledBlock block = area.open(pool, size);
    if (block.pages == nullptr) {
        heap_.refund_outside(bytes);
        return {};
    }
    record_->totals.bucket_capacity_bytes[set[bucket].row()].fetch_add(bytes,
                                                                       std::memory_order_relaxed);
    has_sampled_.store(true, std::memory_order_relaxed);
    return block;
}

bool Pool::free_sampled(void* p) noexcept {
    const pages::PageEntry entry = heap_.space().map().at(p);
    if (entry.sampled() == nullptr) return false;
    record_end_if_recording(p);
    const SampledBlock block = SampledArea::find(p);
    const bool is_ours = entry.pool_number() == heap_.pool_number() && block.pages != nullptr &&
                         p == block.address();
    const base::BlockSize size = entry.sampled()->size.load(std::memory_order_relaxed);
    const SampledArea::Freed freed =
        is_ours ? pages::sampled_area().free(block) : SampledArea::Freed();
    if (!freed.was_in_use) {
        misused(p, find(p));
        return true;
    }
    void* const charge = freed.profiled == nullptr ? nullptr : freed.profiled->charge;
    if (freed.profiled != nullptr) end_profile(*freed.profiled);
    blocks::BucketSet& set = series(size.series);
    if (blocks::Cache* const cache = attach(set)) {
        cache->count_outside_free(size.bucket);
    } else {
        set.count_direct_free(size.bucket);
    }
    const unsigned row = set[size.bucket].row();
    record_->totals.let_go_from(row, set.block_bytes(size.bucket));
    if (freed.closed_bytes != 0) {
        record_->totals.bucket_capacity_bytes[row].fetch_sub(freed.closed_bytes,
                                                             std::memory_order_relaxed);
        heap_.refund_outside(freed.closed_bytes);
    }
    if (charge != nullptr)
        refund(*static_cast<blocks::BlockCharge*>(charge), set.block_bytes(size.bucket));
    return true;
}

// Called before the pool is destroyed.
void Pool::forget_profile() noexcept {
    if (profiled_in_use_.load(std::memory_order_relaxed) != 0) {
        statistics::profiled_blocks().forget_pool(heap_.pool_number());
    }
    if (has_sampled_.load(std::memory_order_relaxed)) {
        heap_.refund_outside(pages::sampled_area().forget_pool(heap_.pool_number()));
    }
}

Pool::Finding Pool::find_sampled(const void* p) noexcept {
    const SampledBlock block = SampledArea::find(p);
    const bool is_ours =
        heap_.space().map().at(p).pool_number() == heap_.pool_number() && block.pages != nullptr;
    if (!is_ours) return {};
    const base::BlockSize size = block.pages->size.load(std::memory_order_relaxed);
    Finding finding{.what = block.address() == p ? Finding::What::block : Finding::What::interior,
                    .block = block.address(),
                    // A sized free never refers to a block of a finer size.
                    .bucket = size.series == 0 ? size.bucket : bucket_count,
                    .usable = block.pages->block_bytes(),
                    .requested = 0};
    if (!block.is_in_use()) finding.what = Finding::What::freed;
    return finding;
}

}  // namespace abi_2
}  // namespace tensorpool::detail
