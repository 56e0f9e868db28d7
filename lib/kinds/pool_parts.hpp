#pragma once

#include "base/canary.hpp"
#include "base/checks.hpp"
#include "blocks/thread_registry.hpp"
#include "platform/tools/memory_tools.hpp"

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

/// The numbers of the watchers of a pool (watcher.hpp), as bits.
using WatcherSet = std::uint8_t;
WatcherSet watchers_of(const PoolParts& pool) noexcept;

/// The data of one pool, on which routes and kinds work. It lies in memory mapped from the system,
/// not from malloc. Each member is thread-safe or fixed.
struct PoolParts {
    PoolParts(PoolOptions&& given, unsigned number,
              statistics::OwnedRecord<statistics::PoolRecord>&& made) noexcept;
    ~PoolParts();

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
void count_large_allocation(PoolParts& pool, std::size_t requested, std::size_t taken) noexcept;
/// Counts a free. With `Held::no`, its bytes are no longer held by the pool.
enum class Held : bool { no, yes };
void count_large_free(PoolParts& pool, std::size_t taken, Held held) noexcept;

/// Returns the calling thread's cache for this series, which it makes if there is none; nullptr if
/// there can be none.
blocks::Cache* attach(PoolParts& pool, blocks::BucketSet& set) noexcept;

}  // namespace tensorpool::kinds
