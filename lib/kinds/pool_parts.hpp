#pragma once

#include <memory>

#include "base/canary.hpp"
#include "base/checks.hpp"
#include "blocks/thread_registry.hpp"
#include "limits/budget_node.hpp"
#include "platform/tools/memory_tools.hpp"
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

}  // namespace tensorpool::kinds
