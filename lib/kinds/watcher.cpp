#include "kinds/watcher.hpp"

#include "kinds/kinds.hpp"

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

// What took longer was disturbed: the first stack of a process reads the tables of its files, which
// takes milliseconds.
constexpr std::uint64_t max_cost_ns = 20'000;
constexpr std::uint64_t max_cost_of_serving_ns = 50'000;
constexpr std::int64_t ask_again_bytes = std::int64_t{64} << 20;

double cost_since(std::uint64_t begun_ns, std::uint64_t most = max_cost_ns) noexcept {
    return static_cast<double>(std::min(platform::monotonic_clock_ns() - begun_ns, most));
}

// Returns whether the request ends the watcher's distance, and not only the part before a new look
// at its pace. It may be longer than what is left: the rest counts for the next distance. What is
// not estimated need not be random, so a watcher that serves leaves the first requests alone.
bool ends(Distance& distance, watch::Pace& pace, unsigned number, const watch::Terms& terms,
          double interval) noexcept {
    while (distance.mean == 0) {
        if (pace.lacks_rate()) pace.look(platform::thread_time_ns());
        const std::int64_t left = distance.left;
        pace.set(distance, number, terms, interval);
        if (watcher_of(number).may_serve()) {
            distance.left = std::max(distance.left, static_cast<std::int64_t>(interval));
        }
        distance.left += left;
        if (distance.left >= 0) return false;
    }
    if (pace.is_time_to_look(terms)) pace.look(platform::thread_time_ns());
    return true;
}

void look(PoolParts& pool, unsigned number, const Request& request, Distance& distance,
          bool is_served, Looked& looked) noexcept {
    watch::Pace& pace = blocks::own_caches().pace;
    const Watcher& watcher = watcher_of(number);
    const double interval = watcher.interval(pool);
    const bool looks_always = interval == Watcher::every_request;
    if (interval == 0) {
        distance = {.left = ask_again_bytes};
        return;
    }
    const watch::Terms terms = watcher.terms(pool);
    if (!looks_always && !ends(distance, pace, number, terms, interval)) return;
    const double mean = looks_always ? interval : distance.mean;
    if (!watcher.may_serve()) {
        looked.means[number] = mean;
        looked.marks = true;
    } else if (!is_served && looked.block == nullptr) {
        const double later = watcher.later_cost(request);
        if (looks_always || pace.may_take(number, terms, later)) {
            looked.block = watcher.serve(pool, request);
        }
        if (looked.block != nullptr) {
            pace.count(number, terms, cost_since(looked.begun_ns, max_cost_of_serving_ns) + later);
            pool.entry(looked.block).placed()->watcher = number + 1;
        }
    }
    if (looks_always) {
        distance = {};
    } else {
        pace.set(distance, number, terms, interval);
    }
}

// REQUIRES: the countdown has counted the request.
Looked look_at_counted(PoolParts& pool, blocks::Cache& cache, const Request& request,
                       bool is_served) noexcept {
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
        if ((pool.watchers >> number & 1) != 0) {
            look(pool, number, request, distance, is_served, looked);
        } else {
            distance.left = Distance::never;
        }
    }
    cache.bytes_to_sample = cache.countdown.arm();
    return looked;
}

// Returns the marks of watchers, which cover `mark`, or `mark` if there is none.
BlockMark* mark_by_watchers(PoolParts& pool, const void* p, const Request& request,
                            const Looked& looked, BlockMark* mark) noexcept {
    for (unsigned number = 0; number != max_watchers; ++number) {
        if (looked.means[number] == 0) continue;
        const Watcher& watcher = watcher_of(number);
        if (BlockMark* const top = watcher.mark(request, p, looked.means[number], mark)) {
            mark = top;
            mark->watcher = number + 1;
        }
        blocks::own_caches().pace.count(number, watcher.terms(pool),
                                        cost_since(looked.begun_ns) + watcher.later_cost(request));
    }
    return mark;
}

void mark_pages(PoolParts& pool, const void* p, const Request& request,
                const Looked& looked) noexcept {
    Span& span = *pool.entry(p).span();
    BlockMark* const mark = mark_by_watchers(pool, p, request, looked, span.mark());
    if (mark != span.mark()) mark_large(pool, span, *mark);
}

}  // namespace

// The path that serves the request subtracts its bytes again, so they are added to the next
// distance.
Looked look_at(PoolParts& pool, blocks::Cache& cache, const Request& request) noexcept {
    const auto bytes = static_cast<std::int64_t>(request.bytes);
    cache.bytes_to_sample -= bytes;
    const Looked looked = look_at_counted(pool, cache, request, false);
    if (looked.block == nullptr) {
        cache.bytes_to_sample += bytes;
    } else if (looked.marks) {
        pool.has_marks.store(true, std::memory_order_relaxed);
        pool.entry(looked.block).placed()->mark =
            mark_by_watchers(pool, looked.block, request, looked, nullptr);
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
    BlockMark* const top = mark_by_watchers(pool, p, request, looked, earlier);
    mark.store(top != nullptr ? top : &no_mark, std::memory_order_relaxed);
}

void* watch_pages(PoolParts& pool, const Request& request, SlowPath& path,
                  AllocatePages allocate) noexcept {
    blocks::Cache* const cache = blocks::thread_registry().attach(pool.buckets);
    if (cache == nullptr || !is_look_due(*cache, request.bytes)) [[likely]]
        return allocate(pool, cache, request, path);
    const Looked looked = look_at(pool, *cache, request);
    if (looked.block != nullptr) return looked.block;
    void* const block = allocate(pool, cache, request, path);
    if (looked.marks && block != nullptr) mark_pages(pool, block, request, looked);
    if (looked.marks && block == nullptr) put_back(*cache, looked);
    return block;
}

void watch_resized(PoolParts& pool, Span& span, std::size_t bytes) noexcept {
    if (span.is_marked) span.take_mark().on_free(span.bytes());
    blocks::Cache* const cache = blocks::own_cache(pool.place);
    if (cache == nullptr) return;
    cache->bytes_to_sample -= static_cast<std::int64_t>(bytes);
    if (cache->bytes_to_sample >= 0) [[likely]]
        return;
    const Request request{bytes, smallest_block_bytes};
    const Looked looked = look_at_counted(pool, *cache, request, true);
    if (looked.marks) mark_pages(pool, pool.large.address_of(span), request, looked);
}

// The mark is set when the block's address, which the watchers need, is known.
void* allocate_watched(PoolParts& pool, blocks::Cache& cache, const Request& request,
                       SlowPath& path) noexcept {
    const Looked looked = look_at(pool, cache, request);
    if (looked.block != nullptr || !looked.marks) return looked.block;
    const unsigned bucket = bucket_for(request.bytes, request.alignment);
    void* const block = take_marked(pool, bucket, request.bytes, blocks::CountAs::hit, path);
    if (block == nullptr) {
        for (unsigned number = 0; number != max_watchers; ++number) {
            if (looked.means[number] != 0) watcher_of(number).lose();
        }
        return nullptr;
    }
    cache.bytes_to_sample -= static_cast<std::int64_t>(request.bytes);
    blocks::BucketSet& marked = *pool.buckets.shared().marked;
    mark_watched(pool, blocks::mark_of(marked[bucket].traits, block), block, request, looked);
    return block;
}

FreeCost::FreeCost(unsigned watcher) noexcept : watcher_(watcher) {
    if (watcher != 0) begun_ns_ = platform::monotonic_clock_ns();
}

FreeCost::~FreeCost() {
    if (watcher_ == 0 || blocks::thread_caches == &blocks::no_caches) return;
    blocks::own_caches().pace.count_free(watcher_ - 1, cost_since(begun_ns_));
}

watch::Terms ProfileWatcher::terms(const PoolParts&) const noexcept {
    return watch::profile_terms;
}

double ProfileWatcher::interval(const PoolParts&) const noexcept {
    const std::uint64_t bytes = watch::profile_interval();
    return bytes == 1 ? every_request : static_cast<double>(bytes);
}

// A small block lies elsewhere than the one that would have been used again, so its first touch
// misses the processor's cache, or faults (perf/results/profile.md).
double ProfileWatcher::later_cost(const Request& request) const noexcept {
    constexpr double elsewhere_cost_ns = 1'500;
    constexpr std::size_t missed_bytes_per_ns = 8;
    if (request.bytes > largest_block_bytes) return 0;
    return elsewhere_cost_ns + static_cast<double>(request.bytes / missed_bytes_per_ns);
}

}  // namespace tensorpool::kinds
