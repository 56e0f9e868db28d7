#include "kinds/watcher.hpp"

#include <algorithm>

#include "blocks/thread_registry.hpp"
#include "kinds/marked_kind.hpp"
#include "platform/platform.hpp"

namespace tensorpool::kinds {
namespace {

using base::BlockMark;
using watch::Distance;
using watch::max_watchers;

/// The mark of a block that no watcher could mark: each block in use of the marked set has one.
struct NoMark final : BlockMark {
    void on_free(std::size_t) noexcept override {}
    BlockMark* charge() noexcept override { return nullptr; }
};
constinit NoMark no_mark;

// What took longer was disturbed.
constexpr double max_free_cost_ns = 50'000;

constexpr std::int64_t as_distance(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>(bytes);
}

// REQUIRES: the countdown has counted the request.
Looked look(PoolParts& pool, blocks::Cache& cache, const Request& request,
            bool may_serve) noexcept {
    Looked looked{.begun_ns = platform::monotonic_clock_ns()};
    watch::Pace& pace = blocks::own_caches().pace;
    if (!pace.has_begun()) {
        pace.begin(reinterpret_cast<std::uintptr_t>(&cache) ^ looked.begun_ns,
                   watch::process_pace());
    }
    pace.pass(cache.countdown.settle(cache.bytes_to_sample));
    for (unsigned number = 0; number != max_watchers; ++number) {
        Distance& distance = cache.countdown.distances[number];
        if (distance.left >= 0) continue;
        if ((pool.watchers >> number & 1) == 0) {
            distance.left = Distance::never;
            continue;
        }
        Look due{.pool = pool,
                 .request = request,
                 .may_serve = may_serve && looked.block == nullptr,
                 .watcher = number,
                 .begun_ns = looked.begun_ns,
                 .pace = pace,
                 .distance = distance};
        const Wish wish = watcher_of(number).look(due);
        if (wish.block != nullptr) looked.block = wish.block;
        looked.means[number] = wish.mean;
    }
    cache.bytes_to_sample = cache.countdown.arm();
    return looked;
}

// Returns the marks of watchers, which cover `mark`, or `mark` if there is none.
BlockMark* begin_marks(PoolParts& pool, const void* p, const Request& request, const Looked& looked,
                       BlockMark* mark) noexcept {
    watch::Pace& pace = blocks::own_caches().pace;
    for (unsigned number = 0; number != max_watchers; ++number) {
        const double mean = looked.means[number];
        if (mean == 0) continue;
        Distance none;
        Look due{.pool = pool,
                 .request = request,
                 .may_serve = false,
                 .watcher = number,
                 .begun_ns = looked.begun_ns,
                 .pace = pace,
                 .distance = none};
        BlockMark* const begun = watcher_of(number).begin(due, p, mean, mark);
        if (begun == nullptr) continue;
        begun->watcher = number + 1;
        mark = begun;
    }
    return mark;
}

void mark_pages(PoolParts& pool, const void* p, const Request& request,
                const Looked& looked) noexcept {
    Span& span = *pool.entry(p).span();
    BlockMark* const mark = begin_marks(pool, p, request, looked, span.mark());
    if (mark != span.mark()) mark_large(pool, span, *mark);
}

}  // namespace

// If the countdown is negative, the inline path has subtracted the request's bytes. Otherwise the
// path that serves the request subtracts them, so they are added to the next distance.
Looked look_if_due(PoolParts& pool, blocks::Cache& cache, const Request& request) noexcept {
    const std::int64_t bytes = as_distance(request.bytes);
    if (cache.bytes_to_sample >= bytes) [[likely]]
        return {};
    if (cache.bytes_to_sample >= 0) cache.bytes_to_sample -= bytes;
    const Looked looked = look(pool, cache, request, true);
    if (looked.block == nullptr) {
        cache.bytes_to_sample += bytes;
    } else if (looked.marks()) {
        pool.has_marks.store(true, std::memory_order_relaxed);
        pages::PlacedBlock& placed = *pool.entry(looked.block).placed();
        placed.mark = begin_marks(pool, looked.block, request, looked, nullptr);
    }
    return looked;
}

void put_back(blocks::Cache& cache, const Looked& looked) noexcept {
    for (unsigned number = 0; number != max_watchers; ++number) {
        if (looked.means[number] == 0) continue;
        cache.countdown.distances[number] = {.left = -1, .mean = looked.means[number]};
    }
    cache.bytes_to_sample = cache.countdown.arm();
}

void mark_watched(PoolParts& pool, pages::BlockStates::Mark& mark, const void* p,
                  const Request& request, const Looked& looked) noexcept {
    BlockMark* const earlier = mark.load(std::memory_order_relaxed);
    BlockMark* const begun = begin_marks(pool, p, request, looked, earlier);
    mark.store(begun != nullptr ? begun : &no_mark, std::memory_order_relaxed);
}

void* watch_pages(PoolParts& pool, const Request& request, SlowPath& path,
                  AllocatePages allocate) noexcept {
    blocks::Cache* const cache = blocks::thread_registry().attach(pool.buckets);
    if (cache == nullptr) return allocate(pool, cache, request, path);
    const Looked looked = look_if_due(pool, *cache, request);
    if (looked.block != nullptr) return looked.block;
    void* const block = allocate(pool, cache, request, path);
    if (!looked.marks()) [[likely]]
        return block;
    if (block != nullptr) {
        mark_pages(pool, block, request, looked);
    } else {
        put_back(*cache, looked);
    }
    return block;
}

void watch_lengthened(PoolParts& pool, Span& span, std::size_t bytes) noexcept {
    if (span.is_marked) span.take_mark().on_free(span.bytes());
    blocks::Cache* const cache = blocks::own_cache(pool.place);
    if (cache == nullptr) return;
    cache->bytes_to_sample -= as_distance(bytes);
    if (cache->bytes_to_sample >= 0) [[likely]]
        return;
    const Request request{bytes, smallest_block_bytes};
    const Looked looked = look(pool, *cache, request, false);
    if (looked.marks()) mark_pages(pool, pool.large.address_of(span), request, looked);
}

// The mark is set when the block's address, which the watchers need, is known.
void* allocate_watched(PoolParts& pool, blocks::Cache& cache, const Request& request,
                       SlowPath& path) noexcept {
    const Looked looked = look_if_due(pool, cache, request);
    if (looked.block != nullptr || !looked.marks()) return looked.block;
    const unsigned bucket = bucket_for(request.bytes, request.alignment);
    void* const block =
        take_marked(pool, bucket, request.bytes, blocks::BucketSet::CountAs::hit, path);
    if (block == nullptr) {
        for (unsigned number = 0; number != max_watchers; ++number) {
            if (looked.means[number] != 0) watcher_of(number).lose();
        }
        return nullptr;
    }
    cache.bytes_to_sample -= as_distance(request.bytes);
    mark_watched(pool, (*pool.buckets.marked)[bucket].mark_of(block), block, request, looked);
    return block;
}

FreeCost::FreeCost(unsigned watcher) noexcept : watcher_(watcher) {
    if (watcher != 0) begun_ns_ = platform::monotonic_clock_ns();
}

FreeCost::~FreeCost() {
    if (watcher_ == 0 || blocks::thread_caches == &blocks::no_caches) return;
    const auto took = static_cast<double>(platform::monotonic_clock_ns() - begun_ns_);
    blocks::own_caches().pace.count_free(watcher_ - 1, std::min(took, max_free_cost_ns));
}

}  // namespace tensorpool::kinds
