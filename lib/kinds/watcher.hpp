#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block_mark.hpp"
#include "kinds/kind.hpp"
#include "kinds/route.hpp"
#include "watch/pace.hpp"

// What looks on: the heap profile and guards. A request of which a watcher's distance ends takes
// the slow path of its call, because the countdown of the thread's cache (`bytes_to_sample`) does
// not suffice for it.

namespace tensorpool::kinds {

/// A request at which a watcher looks.
struct Look {
    PoolParts& pool;
    const Request& request;
    bool may_serve;             // false: another block serves it already
    unsigned watcher;           // the watcher's number
    std::uint64_t begun_ns;     // when the look began, by the monotonic clock
    watch::Pace& pace;          // of the thread
    watch::Distance& distance;  // of the cache; it has ended
};

/// What a watcher wishes.
struct Wish {
    void* block = nullptr;  // a block of the watcher that serves the request
    /// If not 0, the watcher marks the block that serves the request, which stands for others: this
    /// is the mean distance, in bytes, at which it looks at requests.
    double mean = 0;
};

/// What looks at one request in some bytes of each thread, and may mark the block that serves it.
/// All watchers stand in the list of kinds.cpp, and a pool has those of them that watch it, which
/// is fixed when it is made. The objects have no state: it is the thread's (watch::Pace) and the
/// cache's (watch::Distance).
class Watcher {
public:
    /// Whether it watches this pool, which is being made.
    virtual bool watches(const PoolParts& pool) const noexcept = 0;
    /// Looks at a request, and sets the next distance.
    virtual Wish look(Look& look) const noexcept = 0;
    /// Returns the mark of the block at `p`, which serves a request that it wished to mark, or
    /// nullptr if it has none. The mark covers `covered`, which may be nullptr: its end ends that.
    virtual base::BlockMark* begin(Look& look, const void* p, double mean,
                                   base::BlockMark* covered) const noexcept = 0;
    /// Notes that no block could be marked.
    virtual void lose() const noexcept {}

protected:
    ~Watcher() = default;
};

/// Returns the watcher with this number.
const Watcher& watcher_of(unsigned number) noexcept;

/// What the watchers decided about a request.
struct Looked {
    void* block = nullptr;  // a watcher's block that serves it
    std::array<double, watch::max_watchers> means = {};
    std::uint64_t begun_ns = 0;

    bool marks() const noexcept { return means != decltype(means){}; }
};
/// Lets watchers look at a request if the countdown does not suffice for it.
Looked look_if_due(PoolParts& pool, blocks::Cache& cache, const Request& request) noexcept;
/// Notes that a request was refused which watchers wished to mark: they mark the next one, which is
/// the same, after free memory was gathered.
void put_back(blocks::Cache& cache, const Looked& looked) noexcept;
/// Sets the marks of watchers on a block of the marked set. They cover the block's earlier mark.
void mark_watched(PoolParts& pool, pages::BlockStates::Mark& mark, const void* p,
                  const Request& request, const Looked& looked) noexcept;

/// Returns a block of a watcher, or a small block of the marked set with the marks of watchers, or
/// nullptr if the request is to be served as any other.
void* allocate_watched(PoolParts& pool, blocks::Cache& cache, const Request& request,
                       SlowPath& path) noexcept;
/// Serves a request for a block of whole pages by `allocate`, unless a watcher serves it, and lets
/// watchers mark the block.
using AllocatePages = void* (*)(PoolParts& pool, blocks::Cache* cache, const Request& request,
                                SlowPath& path) noexcept;
void* watch_pages(PoolParts& pool, const Request& request, SlowPath& path,
                  AllocatePages allocate) noexcept;
/// Notes that a block of whole pages was lengthened: it counts as a new one.
void watch_lengthened(PoolParts& pool, Span& span, std::size_t bytes) noexcept;

/// Measures what the free of a block with a watcher's mark costs the thread, from its construction
/// to its destruction. `watcher` is the number of the watcher plus 1, or 0 for none.
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

}  // namespace tensorpool::kinds
