#pragma once

#include "kinds/kind.hpp"
#include "watch/profile/profiled_blocks.hpp"

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
/// Lets watchers look at a request. REQUIRES: a look is due.
Looked look_at(PoolParts& pool, blocks::Cache& cache, const Request& request) noexcept;
/// Notes that a request was refused whose block watchers would have marked: they mark the next one,
/// which is the same, after free memory was gathered.
void put_back(blocks::Cache& cache, const Looked& looked) noexcept;
/// Sets the marks of watchers on a block of the marked set. They cover the block's earlier mark.
void mark_watched(PoolParts& pool, pages::BlockStates::Mark& mark, const void* p,
                  const Request& request, const Looked& looked) noexcept;

/// Returns a block of a watcher, or a small block of the marked set with the marks of watchers, or
/// nullptr if the request is to be served as any other. REQUIRES: a look is due.
void* allocate_watched(PoolParts& pool, blocks::Cache& cache, const Request& request,
                       SlowPath& path) noexcept;
/// Serves a request for a block of whole pages by `allocate`, unless a watcher serves it, and lets
/// watchers mark the block.
using AllocatePages = void* (*)(PoolParts& pool, blocks::Cache* cache, const Request& request,
                                SlowPath& path) noexcept;
void* watch_pages(PoolParts& pool, const Request& request, SlowPath& path,
                  AllocatePages allocate) noexcept;
/// Notes that a block of whole pages was made longer or shorter: it counts as a new one.
void watch_resized(PoolParts& pool, Span& span, std::size_t bytes) noexcept;

/// Measures what the free of a watcher's block costs the thread, from its construction to its
/// destruction. `watcher` is the number of the watcher plus 1, or 0 for none.
class FreeCost {
public:
    explicit FreeCost(unsigned watcher) noexcept;
    ~FreeCost();
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
    watch::Terms terms(const PoolParts& pool) const noexcept override;
    double interval(const PoolParts& pool) const noexcept override;
    base::BlockMark* mark(const Request& request, const void* p, double mean,
                          base::BlockMark* covered) const noexcept override {
        return watch::profiled_blocks().begin(p, request.bytes, mean, covered);
    }
    void lose() const noexcept override { watch::profiled_blocks().count_lost(); }
    double later_cost(const Request& request) const noexcept override;
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
