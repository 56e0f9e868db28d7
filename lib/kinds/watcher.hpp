#pragma once

#include "kinds/kinds.hpp"

namespace tensorpool::kinds {

/// What looks at one request in some bytes of each thread: it may serve the request with a block of
/// its own, or mark the block that serves it. All watchers stand in the list of kinds.cpp, and a
/// pool has those of them that watch it, which is fixed when it is made. The objects have no state:
/// what there is belongs to the thread (watch::Pace) or to the cache (watch::Countdown).
///
/// A request that ends the distance of a watcher takes the slow path of its call, because the
/// countdown of the thread's cache (`bytes_to_sample`) does not suffice for it.
class Watcher {
public:
    /// Whether it watches this pool, which is being made.
    virtual bool watches(const PoolParts& pool) const noexcept = 0;
    /// How much of a thread's time it may take in this pool.
    virtual watch::Terms terms(const PoolParts& pool) const noexcept = 0;
    /// The least mean distance between requests that it looks at, in bytes. 0 for none: it is asked
    /// again after 64 MiB. With `every_request` it looks at each, whatever that takes.
    virtual double interval(const PoolParts& pool) const noexcept = 0;
    static constexpr double every_request = 1.0 / 64;

    /// Whether `serve` may return a block. Then the watcher looks at a request only if what it has
    /// saved suffices for the cost of this one.
    virtual bool may_serve() const noexcept { return false; }
    /// Serves the request with a block of a layer above (pages::PlacedBlock), or returns nullptr.
    virtual void* serve(PoolParts&, const Request&) const noexcept { return nullptr; }
    /// Returns the mark of the block at `p` that serves the request, or nullptr if it has none. The
    /// request stands for others: `mean` is the mean distance that it ended. The mark covers
    /// `covered`, which may be nullptr: the end of the mark ends that.
    virtual base::BlockMark* mark(const Request&, const void* /*p*/, double /*mean*/,
                                  base::BlockMark* /*covered*/) const noexcept {
        return nullptr;
    }
    /// Notes that there was no block that could be marked.
    virtual void lose() const noexcept {}
    /// What its block costs the thread beside the calls of the pool, in nanoseconds: an estimate.
    virtual double later_cost(const Request&) const noexcept { return 0; }

protected:
    ~Watcher() = default;
};

/// Adds a watcher of another folder. REQUIRES: no pool was made yet, and fewer than
/// `watch::max_watchers` stand in the list.
void add(const Watcher& watcher) noexcept;
/// Returns the watcher with this number.
const Watcher& watcher_of(unsigned number) noexcept;

// Returns whether the request ends the watcher's distance, and not only the part before a new look
// at its pace. It may be longer than what is left: the rest counts for the next distance. What is
// not estimated need not be random, so a watcher that serves leaves the first requests alone.
inline bool ends(watch::Distance& distance, watch::Pace& pace, unsigned number,
                 const watch::Terms& terms, double interval) noexcept {
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

/// What the watchers decided about a request.
struct Looked {
    void* block = nullptr;                               // a watcher's block that serves it
    bool marks = false;                                  // watchers mark the block that serves it
    std::array<double, watch::max_watchers> means = {};  // of their distances; 0 for other watchers
    std::uint64_t begun_ns = 0;
};
inline bool is_look_due(const blocks::Cache& cache, std::size_t bytes) noexcept {
    return cache.bytes_to_sample < static_cast<std::int64_t>(bytes);
}
// What took longer was disturbed: the first stack of a process reads the tables of its files, which
// takes milliseconds.
inline constexpr std::uint64_t max_cost_ns = 20'000;

inline double cost_since(std::uint64_t begun_ns, std::uint64_t most = max_cost_ns) noexcept {
    return static_cast<double>(std::min(platform::monotonic_clock_ns() - begun_ns, most));
}

// Returns the marks of watchers, which cover `mark`, or `mark` if there is none.
inline base::BlockMark* mark_by_watchers(PoolParts& pool, const void* p, const Request& request,
                                         const Looked& looked, base::BlockMark* mark) noexcept {
    for (unsigned number = 0; number != watch::max_watchers; ++number) {
        if (looked.means[number] == 0) continue;
        const Watcher& watcher = watcher_of(number);
        if (base::BlockMark* const top = watcher.mark(request, p, looked.means[number], mark)) {
            mark = top;
            mark->watcher = number + 1;
        }
        blocks::own_caches().pace.count(number, watcher.terms(pool),
                                        cost_since(looked.begun_ns) + watcher.later_cost(request));
    }
    return mark;
}

inline constexpr std::int64_t ask_again_bytes = std::int64_t{64} << 20;
inline constexpr std::uint64_t max_cost_of_serving_ns = 50'000;

inline void look(PoolParts& pool, unsigned number, const Request& request,
                 watch::Distance& distance, bool is_served, Looked& looked) noexcept {
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
inline Looked look_at_counted(PoolParts& pool, blocks::Cache& cache, const Request& request,
                              bool is_served) noexcept {
    Looked looked{.begun_ns = platform::monotonic_clock_ns()};
    watch::Pace& pace = blocks::own_caches().pace;
    if (!pace.has_begun()) {
        pace.begin(reinterpret_cast<std::uintptr_t>(&cache) ^ looked.begun_ns,
                   watch::process_pace());
    }
    pace.pass(cache.countdown.settle(cache.bytes_to_sample));
    for (unsigned number = 0; number != watch::max_watchers; ++number) {
        watch::Distance& distance = cache.countdown.distances[number];
        if (distance.left >= 0) continue;
        if ((pool.watchers >> number & 1) != 0) {
            look(pool, number, request, distance, is_served, looked);
        } else {
            distance.left = watch::Distance::never;
        }
    }
    cache.bytes_to_sample = cache.countdown.arm();
    return looked;
}

/// Lets watchers look at a request. REQUIRES: a look is due. The path that serves the request
/// subtracts its bytes again, so they are added to the next distance.
inline Looked look_at(PoolParts& pool, blocks::Cache& cache, const Request& request) noexcept {
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
/// Notes that a request was refused whose block watchers would have marked: they mark the next one,
/// which is the same, after free memory was gathered.
inline void put_back(blocks::Cache& cache, const Looked& looked) noexcept {
    for (unsigned number = 0; number != watch::max_watchers; ++number) {
        if (looked.means[number] == 0) continue;
        cache.countdown.distances[number] = {.left = -1, .mean = looked.means[number]};
    }
    cache.bytes_to_sample = cache.countdown.arm();
}
/// The mark of a block that no watcher could mark: each block in use of the marked set has one.
struct NoMark final : base::BlockMark {
    void on_free(std::size_t) noexcept override {}
    base::BlockMark* charge() noexcept override { return nullptr; }
};

inline constinit NoMark no_mark;

/// Sets the marks of watchers on a block of the marked set. They cover the block's earlier mark.
inline void mark_watched(PoolParts& pool, pages::BlockStates::Mark& mark, const void* p,
                         const Request& request, const Looked& looked) noexcept {
    base::BlockMark* const earlier = mark.load(std::memory_order_relaxed);
    base::BlockMark* const top = mark_by_watchers(pool, p, request, looked, earlier);
    mark.store(top != nullptr ? top : &no_mark, std::memory_order_relaxed);
}

/// Returns a block of a watcher, or a small block of the marked set with the marks of watchers, or
/// nullptr if the request is to be served as any other. REQUIRES: a look is due. The mark is set
/// when the block's address, which the watchers need, is known.
inline void* allocate_watched(PoolParts& pool, blocks::Cache& cache, const Request& request,
                              SlowPath& path) noexcept {
    const Looked looked = look_at(pool, cache, request);
    if (looked.block != nullptr || !looked.marks) return looked.block;
    const unsigned bucket = bucket_for(request.bytes, request.alignment);
    void* const block = take_marked(pool, bucket, request.bytes, blocks::CountAs::hit, path);
    if (block == nullptr) {
        for (unsigned number = 0; number != watch::max_watchers; ++number) {
            if (looked.means[number] != 0) watcher_of(number).lose();
        }
        return nullptr;
    }
    cache.bytes_to_sample -= static_cast<std::int64_t>(request.bytes);
    blocks::BucketSet& marked = *pool.buckets.shared().marked;
    mark_watched(pool, blocks::mark_of(marked[bucket].traits, block), block, request, looked);
    return block;
}
/// Serves a request for a block of whole pages by `allocate`, unless a watcher serves it, and lets
/// watchers mark the block.
using AllocatePages = void* (*)(PoolParts& pool, blocks::Cache* cache, const Request& request,
                                SlowPath& path) noexcept;
inline void mark_pages(PoolParts& pool, const void* p, const Request& request,
                       const Looked& looked) noexcept {
    Span& span = *pool.entry(p).span();
    base::BlockMark* const mark = mark_by_watchers(pool, p, request, looked, span.mark());
    if (mark != span.mark()) mark_large(pool, span, *mark);
}

inline void* watch_pages(PoolParts& pool, const Request& request, SlowPath& path,
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
/// Notes that a block of whole pages was made longer or shorter: it counts as a new one.
inline void watch_resized(PoolParts& pool, Span& span, std::size_t bytes) noexcept {
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

/// Measures what the free of a watcher's block costs the thread, from its construction to its
/// destruction. `watcher` is the number of the watcher plus 1, or 0 for none.
class FreeCost {
public:
    explicit FreeCost(unsigned watcher) noexcept : watcher_(watcher) {
        if (watcher != 0) begun_ns_ = platform::monotonic_clock_ns();
    }
    ~FreeCost() {
        if (watcher_ == 0 || blocks::thread_caches == &blocks::no_caches) return;
        blocks::own_caches().pace.count_free(watcher_ - 1, cost_since(begun_ns_));
    }
    FreeCost(const FreeCost&) = delete;
    FreeCost& operator=(const FreeCost&) = delete;

private:
    const unsigned watcher_;
    std::uint64_t begun_ns_ = 0;
};

/// The heap profile: samples some allocations (watch/profile/profiled_blocks.hpp). A tool that
/// watches memory sees every call, so then no pool is sampled.
class ProfileWatcher final : public Watcher {
public:
    bool watches(const PoolParts& pool) const noexcept override {
        return !pool.is_checked() && !platform::has_memory_tool();
    }
    watch::Terms terms(const PoolParts&) const noexcept override { return watch::profile_terms; }
    double interval(const PoolParts&) const noexcept override {
        const std::uint64_t bytes = watch::profile_interval();
        return bytes == 1 ? every_request : static_cast<double>(bytes);
    }
    base::BlockMark* mark(const Request& request, const void* p, double mean,
                          base::BlockMark* covered) const noexcept override {
        return watch::profiled_blocks().begin(p, request.bytes, mean, covered);
    }
    void lose() const noexcept override { watch::profiled_blocks().count_lost(); }
    // A small block lies elsewhere than the one that would have been used again, so its first touch
    // misses the processor's cache, or faults (perf/results/profile.md).
    double later_cost(const Request& request) const noexcept override {
        constexpr double elsewhere_cost_ns = 1'500;
        constexpr std::size_t missed_bytes_per_ns = 8;
        if (request.bytes > largest_block_bytes) return 0;
        const std::size_t missed_ns = request.bytes / missed_bytes_per_ns;
        return elsewhere_cost_ns + static_cast<double>(missed_ns);
    }
};
inline constexpr ProfileWatcher profile_watcher;

/// Guarded blocks (watch/guards/guarded_area.hpp): some blocks of pools with Checks::sampled.
Kind::Free free_guarded;
Kind::Find find_guarded;
Kind::RecordedBytes recorded_bytes_of_guarded;

/// Guards blocks, so that this takes `PoolOptions::guard_share` of each thread's time.
class GuardWatcher final : public Watcher {
public:
    bool watches(const PoolParts& pool) const noexcept override {
        return pool.is_sampled() && pool.options.guard_share > 0;
    }
    watch::Terms terms(const PoolParts& pool) const noexcept override;
    double interval(const PoolParts& pool) const noexcept override;
    bool may_serve() const noexcept override { return true; }
    void* serve(PoolParts& pool, const Request& request) const noexcept override;
    double later_cost(const Request& request) const noexcept override;
};
inline constexpr GuardWatcher guard_watcher;

}  // namespace tensorpool::kinds
