#include <algorithm>
#include <mutex>
#include <utility>

#include "blocks/thread_registry.hpp"
#include "platform/platform.hpp"
#include "pool/block_server.hpp"
#include "pool/pool.hpp"
#include "statistics/commit_budget.hpp"
#include "statistics/segment/limit_kind.hpp"
#include "statistics/timeline/timeline.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using blocks::Bucket;
using blocks::TakeFrom;
using pages::Changes;
using statistics::write_entry;

// Set while the thread runs an `on_event` callback. A callback may use the pool; events that it
// causes call no callback.
constinit thread_local bool is_reporting TENSORPOOL_INITIAL_EXEC = false;

}  // namespace

bool Pool::reserve(std::size_t capacity, pages::SlowPath& path) noexcept {
    bool done = heap_.reserve(capacity, path);
    while (!done && path.budget.may_retry()) done = heap_.reserve(capacity, path);
    report(path);
    if (!done) {
        count_failure(capacity, path.refusal);
    }
    return done;
}

std::size_t Pool::trim() noexcept {
    Changes changes;
    empty_caches(Bucket::Magazines::destroy, changes);
    heap_.trim(changes);
    buckets_.drop_free_pages();
    report(changes);
    return changes.given_back;
}

// Moves all free memory into the page heap, so that blocks freed in one size can serve another.
// Returns false if some threads were inside slow paths and kept their blocks.
bool Pool::gather(Changes& changes) noexcept {
    return empty_caches(Bucket::Magazines::keep, changes);
}

bool Pool::empty_caches(Bucket::Magazines magazines, Changes& changes) noexcept {
    const bool all_plans = !is_global() || give_back_idle_plans();
    if (is_hardened()) empty_quarantine(changes);
    blocks::thread_registry().give_back_own(buckets_, changes);
    const bool all = blocks::thread_registry().take_back(buckets_, TakeFrom::everyone, changes);
    buckets_.drain(magazines, changes);
    large_.empty_cache(changes);
    return all && all_plans;
}

// Returns true at the end of a period.
bool Pool::keep_to_retention(Changes& changes) noexcept {
    if (!heap_.keep_to_retention(changes)) return false;
    std::size_t unneeded =
        large_.empty_cache_of_unneeded(changes) + buckets_.drain_unneeded(changes);
    if (blocks::Cache* const cache = blocks::thread_registry().attached(buckets_)) {
        unneeded += cache->give_back_unneeded_large(changes);
    }
    // Periods of length 0 end on every call. No large block is parked then.
    if (options_.retain.milliseconds != 0) {
        const std::uint64_t before = record_->totals.free_bytes.load(std::memory_order_relaxed);
        blocks::thread_registry().take_back(buckets_, TakeFrom::idle, changes);
        const std::uint64_t after = record_->totals.free_bytes.load(std::memory_order_relaxed);
        unneeded += after - std::min(after, before);
    }
    if (unneeded != 0) heap_.give_back(unneeded, changes);
    return true;
}

// Free memory that takes memory and that the system may not take: extents, cached large blocks, and
// large blocks that threads keep, with the room that they took for more.
std::size_t Pool::unoffered_bytes() const noexcept {
    return heap_.unoffered_bytes() + buckets_.large_parking_limit().taken();
}

// If what is free here is more than what all others may still take, they could meet the limit of
// the machine or of a control group while this pool keeps unused memory.
void Pool::offer_if_short() noexcept {
    const std::size_t bytes = unoffered_bytes();
    offer_pace_.begin_again(bytes);
    if (statistics::commit_budget().has_available(bytes, platform::monotonic_clock_ns())) return;
    Changes changes;
    offer_free(changes);
    report(changes);
}

void Pool::offer_free(Changes& changes) noexcept {
    blocks::thread_registry().give_back_own(buckets_, changes);
    blocks::thread_registry().take_back(buckets_, TakeFrom::everyone, changes);
    large_.empty_cache(changes);
    heap_.offer_free();
    offer_pace_.begin_again(unoffered_bytes());
}

void Pool::report(const Changes& changes) noexcept {
    if ((changes.grown | changes.given_back) == 0) return;
    counters_.fold();
    record_capacity();
    if (changes.grown != 0) {
        write_entry(EntryKind::growth, LimitKind::none, changes.grown, options_.name);
        report(PoolEvent::Kind::growth, changes.grown, "");
    }
    if (changes.given_back != 0) {
        write_entry(EntryKind::give_back, LimitKind::none, changes.given_back, options_.name);
        report(PoolEvent::Kind::give_back, changes.given_back, "");
    }
}

void Pool::count_failure(std::size_t bytes, const pages::Refusal& refusal) noexcept {
    const LimitKind limit = statistics::limit_kind(refusal);
    // Relaxed: a count that orders nothing.
    record_->totals.failures[static_cast<unsigned>(limit)].fetch_add(1, std::memory_order_relaxed);
    counters_.fold();
    write_entry(statistics::refusal_kind(limit), limit, bytes, options_.name);
    report(PoolEvent::Kind::failure, bytes, refusal.limit);
}

void Pool::report(PoolEvent::Kind kind, std::size_t bytes, const char* limit) noexcept {
    if (!options_.on_event || is_reporting) return;
    is_reporting = true;
    options_.on_event({.kind = kind,
                       .pool = options_.name.c_str(),
                       .bytes = bytes,
                       .in_use = counters_.in_use_bytes(),
                       .capacity = capacity(),
                       .limit = limit});
    is_reporting = false;
}

// A request from another process is served by the next call of any thread. That thread may hold a
// lock that another pool's callback takes, so no callback runs here.
std::size_t trim_all_pools() noexcept {
    const bool was_reporting = std::exchange(is_reporting, true);
    std::size_t bytes = 0;
    pool_list().visit([&](Pool& pool) { bytes += pool.trim(); });
    is_reporting = was_reporting;
    return bytes;
}

// The caller's request may belong to another pool or an arena, so no callback runs here either.
std::size_t give_free_memory_of_pools(const BudgetNode& budget, std::size_t bytes) noexcept {
    const bool was_reporting = std::exchange(is_reporting, true);
    const std::size_t before = budget.in_use();
    std::size_t given = 0;
    pool_list().visit([&](Pool& pool) {
        if (given >= bytes) return;
        pool.give_free_memory(budget, bytes - given);
        given = before - std::min(before, budget.in_use());
    });
    is_reporting = was_reporting;
    return given;
}

// No callback runs under the lock: it may free blocks, which takes the lock.
bool give_back_idle_plans(std::size_t wanted) noexcept {
    if (idle_plan_count.load(std::memory_order_relaxed) == 0) return true;
    // A caller may be inside a request for memory that another layer makes under its lock.
    const std::unique_lock guard(block_servers(), std::try_to_lock);
    if (!guard) return false;
    const bool was_reporting = std::exchange(is_reporting, true);
    block_servers().for_each([&](BlockServer& server) { server.give_back_idle(wanted); });
    is_reporting = was_reporting;
    return true;
}

PoolStatistics Pool::statistics() const noexcept {
    return counters_.statistics();
}

void Pool::add_to(Snapshot& snapshot) const {
    snapshot.pools.push_back(statistics());
}

statistics::SnapshotSource::Identity Pool::identify() const noexcept {
    return {TraceSource::pool, id(), options_.name};
}

}  // namespace abi_2
}  // namespace tensorpool::detail
