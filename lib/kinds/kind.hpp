#pragma once

#include "base/canary.hpp"
#include "base/checks.hpp"
#include "blocks/thread_registry.hpp"
#include "watch/profile/profiled_blocks.hpp"

namespace tensorpool::kinds {

using detail::bucket_bytes;
using detail::bucket_count;
using detail::bucket_of;
using detail::BudgetNode;
using detail::largest_block_bytes;
using detail::smallest_block_bytes;
using pages::Changes;
using pages::PageEntry;
using pages::SlowPath;
using pages::Span;

/// Returns the bucket for a request, or `bucket_count` if whole pages serve it.
inline unsigned bucket_for(std::size_t bytes, std::size_t alignment) noexcept {
    // Up to this alignment, a block of the bucket of max(bytes, alignment) is aligned to its size:
    // blocks below 4 KiB lie without gaps in spans that begin at a page.
    constexpr std::size_t max_bucket_alignment = 2048;
    if (alignment > smallest_block_bytes) {
        bytes = std::max(bytes, alignment);
        if (bytes > max_bucket_alignment) return bucket_count;
    }
    return std::min(bucket_of(bytes), bucket_count);
}

class KindTable;
struct PoolParts;
struct Route;
/// Returns the kinds of pools with these checks.
const KindTable& kinds_for(Checks checks) noexcept;
/// Returns the routes of a pool with these checks. The last one takes every request.
const Route* routes_for(Checks checks) noexcept;

/// The numbers of the watchers of a pool (watcher.hpp), as bits.
using WatcherSet = std::uint8_t;
WatcherSet watchers_of(const PoolParts& pool) noexcept;

// At the place of pools without caches, the short paths for large and for checked blocks find no
// cache, so that a memory tool sees every block. The slow paths use the thread's cache as usual.
inline blocks::OwnPlace place_of(unsigned number) noexcept {
    using detail::cached_pool_count;
    return blocks::OwnPlace(platform::has_memory_tool() ? cached_pool_count
                                                        : std::min(number, cached_pool_count));
}

inline blocks::States states_for(Checks checks) noexcept {
    if (!base::checks_calls(checks)) return blocks::States::none;
    if (checks == Checks::hardened) return blocks::States::hardened;
    return checks == Checks::basic ? blocks::States::uses : blocks::States::requests;
}

inline BudgetNode* budget_of(const PoolOptions& options) noexcept {
    if (options.budget != nullptr) return BudgetAccess::node_of(options.budget);
    return limits::find_named_budget(limits::BudgetSubject::pool, options.name);
}

inline pages::HeapOptions heap_options(const PoolOptions& options) noexcept {
    pages::HeapOptions heap{.max_capacity = options.max_capacity,
                            .growth = options.growth,
                            .retain = options.retain,
                            .huge_pages = options.huge_pages,
                            .numa = options.numa,
                            .budget = budget_of(options),
                            .clock_ns = platform::monotonic_clock_ns,
                            .folios = &pages::folio_choice()};
    heap.keep_records = base::checks_calls(options.checks);
    if (options.retain.milliseconds == 0) heap.retain.bytes = 0;
    return heap;
}

/// The data of one pool, on which routes and kinds work. It lies in memory mapped from the system,
/// not from malloc. Each member is thread-safe or fixed.
struct PoolParts {
    PoolParts(PoolOptions&& given, unsigned number,
              statistics::OwnedRecord<statistics::PoolRecord>&& made) noexcept
        : options(std::move(given)),
          max_parked_bytes(
              is_hardened() ? 0
                            : std::min(blocks::LargeMagazine::max_bytes, options.max_allocation)),
          place(place_of(number)),
          kinds(kinds_for(options.checks)),
          routes(routes_for(options.checks)),
          watchers(watchers_of(*this)),
          record(std::move(made)),
          heap(pages::address_space(), limits::commit_budget(), number, heap_options(options),
               record->totals),
          large(heap, record->totals),
          buckets(options.name.c_str(), states_for(options.checks), heap, large, records, counters,
                  record->totals) {
        records.count_in(record->totals.record_bytes);
        if (watchers != 0) buckets.shared().samples_requests = true;
        watch::show_profile_interval();
    }
    ~PoolParts() {
        buckets.for_each_series(
            [](blocks::BucketSet& set) { blocks::thread_registry().leave(set); });
        // From here on, no thread conceals blocks of this pool.
        if (has_marks.load(std::memory_order_relaxed)) {
            heap.end_marks();
            watch::profiled_blocks().note_end_of_pool(counters.statistics().requested_bytes);
        }
        buckets.for_each_series([](blocks::BucketSet& set) {
            if (!set.is_first()) std::destroy_at(&set);
        });
    }

    const PoolOptions options;
    const std::size_t max_parked_bytes;  // the largest large block that a thread keeps
    const blocks::OwnPlace place;
    const KindTable& kinds;
    const Route* const routes;
    const WatcherSet watchers;
    statistics::OwnedRecord<statistics::PoolRecord> record;
    statistics::PoolCounters counters{record};
    pages::RecordArena records;
    pages::PageHeap heap;
    pages::LargeBlocks large;
    blocks::BucketSet buckets;
    base::Canary canary;
    // Whether blocks were marked. Relaxed: only a pool that is destroyed reads it.
    std::atomic<bool> has_marks = false;
    // The array of all finer series, among the records, or nullptr. Stored with release when all of
    // them are constructed.
    std::atomic<blocks::BucketSet*> finer = nullptr;

    const char* name() const noexcept { return options.name.c_str(); }
    unsigned number() const noexcept { return heap.pool_number(); }
    std::uint64_t id() const noexcept { return record->id.load(std::memory_order_relaxed); }
    statistics::PoolTotals& totals() const noexcept { return record->totals; }
    bool is_global() const noexcept { return number() == blocks::PoolNumbers::global; }
    bool is_hardened() const noexcept { return options.checks == Checks::hardened; }
    /// Whether some blocks are guarded.
    bool is_sampled() const noexcept { return options.checks == Checks::sampled; }
    bool is_checked() const noexcept { return base::checks_calls(options.checks); }
    /// Whether a tool that watches memory sees the pool's blocks. Pools that guard blocks write
    /// into free ones and behind the requested bytes themselves.
    bool is_shown_to_tool() const noexcept {
        return platform::has_memory_tool() && !is_sampled() && !is_hardened();
    }
    /// Whether a scope of the calling thread charges what it allocates here.
    bool is_in_scope() const noexcept {
        return limits::scope_budget != nullptr && heap.options().budget == nullptr;
    }
    bool has_finer_sizes() const noexcept {
        return finer.load(std::memory_order_acquire) != nullptr;
    }
    blocks::BucketSet& series(unsigned number) noexcept {
        return number == 0 ? buckets : finer.load(std::memory_order_acquire)[number - 1];
    }
    PageEntry entry(const void* p) noexcept { return heap.space().map().at(p); }
    bool owns(PageEntry entry) const noexcept { return entry.pool_number() == number(); }
};

// Counting of blocks of whole pages, and of others outside of buckets -------------------------

/// Calls `function(counters, cache)` with the counters of large blocks of the calling thread, or
/// with those that all threads share, under their lock, if `cache` is nullptr.
template <class Function>
void count_large(PoolParts& pool, blocks::Cache* cache, Function function) noexcept {
    if (cache != nullptr) [[likely]] {
        function(cache->counters->large, cache);
        statistics::look_at_scopes();
        return;
    }
    const std::lock_guard guard(pool.counters.shared_mutex());
    function(pool.counters.shared().large, nullptr);
}
/// Counts a block that was allocated, and from then on holds `taken` bytes.
inline void count_large_allocation(PoolParts& pool, std::size_t requested,
                                   std::size_t taken) noexcept {
    count_large(pool, blocks::own_cache(pool.place),
                [&](detail::LargeCounters& counted, blocks::Cache* cache) {
                    pool.totals().hold(taken);
                    detail::add(counted.requested_bytes, requested);
                    detail::add(counted.allocations, 1);
                    detail::add(counted.allocated_bytes, taken);
                    if (cache == nullptr)
                        statistics::count_shared_large_allocation(requested, taken);
                });
}
/// Counts a free. With `Held::no`, its bytes are no longer held by the pool.
enum class Held : bool { no, yes };
inline void count_large_free(PoolParts& pool, std::size_t taken, Held held) noexcept {
    count_large(pool, blocks::own_cache(pool.place),
                [&](detail::LargeCounters& counted, blocks::Cache* cache) {
                    detail::add_release(counted.deallocations, 1);
                    detail::add_release(counted.deallocated_bytes, taken);
                    if (held == Held::no) pool.totals().let_go(taken);
                    if (cache == nullptr) statistics::count_shared_large_deallocation(taken);
                });
}

/// Returns the calling thread's cache for this series, which it makes if there is none; nullptr if
/// there can be none. Before a cache of a finer series, the thread gets one of the first series:
/// the pool counts its threads by the caches of the first series.
inline blocks::Cache* attach(PoolParts& pool, blocks::BucketSet& set) noexcept {
    blocks::ThreadRegistry& registry = blocks::thread_registry();
    if (!set.is_first() && registry.attach(pool.buckets) == nullptr) return nullptr;
    return registry.attach(set);
}

/// Whether the caller or the pool touches the fresh pages of a block of whole pages first.
enum class FirstTouch : bool { by_caller, by_pool };

struct Request {
    std::size_t bytes;
    std::size_t alignment;
    FirstTouch first_touch = FirstTouch::by_caller;
};

/// One way in which a request is served. A pool has a list of them, which is fixed when the pool is
/// made, and the first that takes a request serves it.
struct Route {
    /// Whether this route serves the request, which depends on its size and on the scopes of the
    /// calling thread.
    bool (*takes)(const PoolParts& pool, const Request& request) noexcept = nullptr;
    /// Returns a block, or nullptr with the reason in `path.refusal`.
    void* (*allocate)(PoolParts& pool, const Request& request, SlowPath& path) noexcept = nullptr;
    /// Whether the block belongs to another layer, which counts and records it and describes a
    /// refusal.
    bool is_lent = false;
};

struct Kind;
/// Adds a kind of pages of another folder, and the route that serves its blocks, which is asked
/// first. Hardened pools have neither. REQUIRES: no pool was made yet, at most four are added, and
/// the number is none of a series of buckets (pages::PageKind).
void add(pages::PageKind number, const Kind& kind, const Route& route) noexcept;

using detail::FreedAs;

/// What a pointer that a caller passed refers to.
struct Found {
    enum class What : std::uint8_t { block, interior, freed, foreign } what = What::foreign;
    void* block = nullptr;           // the beginning of the block, for `block` and `interior`
    unsigned bucket = bucket_count;  // `bucket_count` for blocks of whole pages
    std::size_t usable = 0;
    std::size_t requested = 0;

    bool is_block() const noexcept { return what == What::block; }
};

/// What a free states about its block.
struct Stated {
    static constexpr unsigned nothing = ~0U;
    unsigned bucket = nothing;  // the bucket for the stated size, or `bucket_count`
    FreedAs as;

    bool has_size() const noexcept { return as.bytes != FreedAs::unknown; }
    bool agrees(unsigned with_bucket) const noexcept {
        return bucket == with_bucket || bucket == nothing;
    }
};

/// How blocks on one kind of pages are freed, found and resized. The page map names the kind of
/// each page (pages::PageKind), and each pool has a table with one for each, which depends on its
/// checks. A kind knows nothing of the others.
struct Kind {
    /// Frees the block at `p`, whose page has this entry, or reports a misuse. Returns whether the
    /// slow path is to be ended with `changes`: some kinds leave that out of most calls.
    using Free = bool(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                      Changes& changes) noexcept;
    /// Returns what `p` refers to. REQUIRES: `p` was passed by a caller; it may be any pointer.
    using Find = Found(PoolParts& pool, const void* p, PageEntry entry) noexcept;
    /// Resizes the block in use at `p` in place, or by moving its pages. Returns its address then,
    /// and nullptr if its content must be copied.
    using Resize = void*(PoolParts& pool, void* p, const Found& found, std::size_t bytes) noexcept;
    /// Returns the bytes that a recording states for the block at `p`.
    using RecordedBytes = std::size_t(const void* p, PageEntry entry) noexcept;

    Free* free;
    Find* find;
    Resize* resize;
    RecordedBytes* recorded_bytes;
};

/// For kinds whose blocks always move when they are resized.
inline void* always_moves(PoolParts&, void*, const Found&, std::size_t) noexcept {
    return nullptr;
}

/// The kinds of a pool.
class KindTable {
public:
    constexpr KindTable() noexcept = default;
    /// Returns the kind of a page that belongs to the pool, or of any other page.
    const Kind& of(PageEntry entry) const noexcept {
        return *kinds_[static_cast<unsigned>(entry.kind())];
    }
    constexpr void set(pages::PageKind number, const Kind& kind) noexcept {
        kinds_[static_cast<unsigned>(number)] = &kind;
    }
    constexpr void set_all(const Kind& kind) noexcept { kinds_.fill(&kind); }

private:
    std::array<const Kind*, 64> kinds_ = {};
};

/// Returns what `p`, any pointer, refers to in this pool.
Found find(PoolParts& pool, const void* p) noexcept;
/// Returns the usable bytes of the block in use at `p`; 0 if there is none.
std::size_t usable_size(PoolParts& pool, const void* p) noexcept;
/// Records the end of the block at `p`, before it is freed, if calls are recorded.
void record_end_if_recording(PoolParts& pool, const void* p, PageEntry entry) noexcept;

}  // namespace tensorpool::kinds
