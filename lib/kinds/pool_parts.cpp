#include "kinds/pool_parts.hpp"

#include <memory>

#include "kinds/kind.hpp"
#include "limits/budgets.hpp"
#include "watch/profile/profiled_blocks.hpp"

namespace tensorpool::kinds {
namespace {

using blocks::Cache;
using detail::add;
using detail::add_release;
using detail::LargeCounters;

BudgetNode* budget_of(const PoolOptions& options) noexcept {
    if (options.budget != nullptr) return BudgetAccess::node_of(options.budget);
    return limits::find_named_budget(limits::BudgetSubject::pool, options.name);
}

pages::HeapOptions heap_options(const PoolOptions& options) noexcept {
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

blocks::States states_for(Checks checks) noexcept {
    if (!base::checks_calls(checks)) return blocks::States::none;
    if (checks == Checks::hardened) return blocks::States::hardened;
    return checks == Checks::basic ? blocks::States::uses : blocks::States::requests;
}

// At the place of pools without caches, the short paths for large and for checked blocks find no
// cache, so that a memory tool sees every block. The slow paths use the thread's cache as usual.
blocks::OwnPlace place_of(unsigned number) noexcept {
    using detail::cached_pool_count;
    return blocks::OwnPlace(platform::has_memory_tool() ? cached_pool_count
                                                        : std::min(number, cached_pool_count));
}

}  // namespace

PoolParts::PoolParts(PoolOptions&& given, unsigned number,
                     statistics::OwnedRecord<statistics::PoolRecord>&& made) noexcept
    : options(std::move(given)),
      max_parked_bytes(
          is_hardened() ? 0 : std::min(blocks::LargeMagazine::max_bytes, options.max_allocation)),
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

PoolParts::~PoolParts() {
    buckets.for_each_series([](blocks::BucketSet& set) { blocks::thread_registry().leave(set); });
    // From here on, no thread conceals blocks of this pool.
    if (has_marks.load(std::memory_order_relaxed)) {
        heap.end_marks();
        watch::profiled_blocks().note_end_of_pool(counters.statistics().requested_bytes);
    }
    buckets.for_each_series([](blocks::BucketSet& set) {
        if (!set.is_first()) std::destroy_at(&set);
    });
}

// Before a cache of a finer series, the thread gets one of the first series: the pool counts its
// threads by the caches of the first series.
Cache* attach(PoolParts& pool, blocks::BucketSet& set) noexcept {
    blocks::ThreadRegistry& registry = blocks::thread_registry();
    if (!set.is_first() && registry.attach(pool.buckets) == nullptr) return nullptr;
    return registry.attach(set);
}

void count_large_allocation(PoolParts& pool, std::size_t requested, std::size_t taken) noexcept {
    count_large(pool, blocks::own_cache(pool.place), [&](LargeCounters& counted, Cache* cache) {
        pool.totals().hold(taken);
        add(counted.requested_bytes, requested);
        add(counted.allocations, 1);
        add(counted.allocated_bytes, taken);
        if (cache == nullptr) statistics::count_shared_large_allocation(requested, taken);
    });
}

void count_large_free(PoolParts& pool, std::size_t taken, Held held) noexcept {
    count_large(pool, blocks::own_cache(pool.place), [&](LargeCounters& counted, Cache* cache) {
        add_release(counted.deallocations, 1);
        add_release(counted.deallocated_bytes, taken);
        if (held == Held::no) pool.totals().let_go(taken);
        if (cache == nullptr) statistics::count_shared_large_deallocation(taken);
    });
}

}  // namespace tensorpool::kinds
