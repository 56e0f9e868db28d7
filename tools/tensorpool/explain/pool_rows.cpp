// The rows for the memory of pools.
//
// What is free and touched is known from the pools' statistics. The rest of what is resident are
// blocks in use, as far as their owners touched them. The statistics may be damaged, so no row gets
// more than what is left of the resident bytes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "explain/explanation.hpp"

namespace tensorpool::command::explain {
namespace {

constexpr std::uint64_t page_bytes = 4096;

double part(std::uint64_t bytes, std::uint64_t of) {
    return of == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(of);
}
/// Returns `bytes * factor`. Requires: `factor` is 0 to 1.
std::uint64_t times(std::uint64_t bytes, double factor) {
    const std::uint64_t at_most = std::min(bytes, std::uint64_t{1} << 52);
    const auto product = std::llround(static_cast<double>(at_most) * factor);
    return std::min(at_most, static_cast<std::uint64_t>(product));
}
std::uint64_t sum(std::uint64_t one, std::uint64_t other) {
    return one > UINT64_MAX - other ? UINT64_MAX : one + other;
}

/// The free memory of one pool that was touched.
struct FreeMemory {
    std::uint64_t pages = 0;
    std::uint64_t large = 0;
    std::uint64_t small = 0;
    std::uint64_t small_back = 0;  // the estimated part of it whose pages hold nothing else
    std::uint64_t waiting = 0;

    std::uint64_t all() const { return sum(sum(pages, large), sum(small, waiting)); }
};

/// Returns the estimated part of a bucket's free bytes in pages that hold free blocks only, if the
/// blocks in use lie at random.
double free_of_neighbours(const BucketStatistics& bucket) {
    const double bytes = bucket.allocations == 0 ? static_cast<double>(bucket.block_bytes)
                                                 : part(bucket.allocated_bytes, bucket.allocations);
    // Blocks of finer sizes do not begin at pages, so a page holds parts of one block more.
    const bool is_finer = std::lround(bytes) < static_cast<long>(bucket.block_bytes);
    const double others = static_cast<double>(page_bytes) / bytes - (is_finer ? 0 : 1);
    const double used = std::min(part(bucket.in_use_bytes, bucket.capacity_bytes), 1.0);
    return std::pow(1 - used, std::max(others, 0.0));
}

FreeMemory free_memory_of(const PoolStatistics& pool) {
    FreeMemory free;
    free.pages = pool.free_bytes - std::min(pool.free_bytes, pool.untouched_bytes);
    free.large = sum(pool.large.cached_bytes, pool.large.parked_bytes);
    free.waiting = sum(pool.quarantined_bytes, pool.lost_bytes);
    for (const BucketStatistics& bucket : pool.buckets) {
        const std::uint64_t bytes =
            bucket.capacity_bytes - std::min(bucket.capacity_bytes, bucket.in_use_bytes);
        free.small = sum(free.small, bytes);
        free.small_back = sum(free.small_back, times(bytes, free_of_neighbours(bucket)));
    }
    // Small blocks that wait are not in their spans, like those of the depot.
    free.small -= std::min({free.small, free.waiting, pool.depot_bytes});
    free.small_back = std::min(free.small_back, free.small);
    free.small -= std::min(free.small, pool.untouched_span_bytes);
    free.small_back -= std::min(free.small_back, pool.untouched_span_bytes);
    return free;
}

class PoolRows {
public:
    PoolRows(const ProcessSnapshot& snapshot, std::uint64_t resident)
        : snapshot_(snapshot), resident_(resident), left_(resident) {
        for (const PoolStatistics& pool : snapshot.pools) {
            free_bytes_ = sum(free_bytes_, free_memory_of(pool).all());
            in_use_bytes_ = sum(in_use_bytes_, pool.in_use_bytes);
        }
        for (const PlannedArenaStatistics& arena : snapshot.planned) {
            in_use_bytes_ = sum(in_use_bytes_, arena.capacity_bytes);
        }
    }

    std::vector<Row> make() {
        const std::uint64_t touched = resident_ - std::min(resident_, free_bytes_);
        const double of_in_use = std::min(part(touched, in_use_bytes_), 1.0);
        const double of_free = std::min(part(resident_, free_bytes_), 1.0);
        for (const PoolStatistics& pool : snapshot_.pools) {
            add_in_use(pool, of_in_use);
            add_free(pool, free_memory_of(pool), of_free);
        }
        for (const PlannedArenaStatistics& arena : snapshot_.planned) {
            add({fmt::format("planned arena '{}': its plan", arena.name),
                 times(arena.capacity_bytes, of_in_use)});
        }
        add({"pools: pages that the system filled, and calls under way", left_});
        return std::move(rows_);
    }

private:
    void add_in_use(const PoolStatistics& pool, double touched) {
        const std::uint64_t bytes = times(pool.in_use_bytes, touched);
        const std::uint64_t surplus =
            pool.allocated_bytes - std::min(pool.allocated_bytes, pool.requested_bytes);
        const std::uint64_t rounding = times(bytes, part(surplus, pool.allocated_bytes));
        add({fmt::format("pool '{}': blocks in use", pool.name), bytes - rounding});
        add({fmt::format("pool '{}': rounding of these blocks, on average", pool.name), rounding});
    }

    void add_free(const PoolStatistics& pool, const FreeMemory& free, double touched) {
        const std::string trim = fmt::format("tensorpool trim --pid {}", snapshot_.process);
        const auto add_kept = [&](const char* what, std::uint64_t bytes, std::uint64_t back) {
            add({fmt::format("pool '{}': {}", pool.name, what), times(bytes, touched),
                 times(back, touched), back == 0 ? "" : trim});
        };
        add_kept("free pages, kept for the retention period", free.pages, free.pages);
        add_kept("free large blocks, kept by threads and in the cache", free.large, free.large);
        add_kept("free small blocks, kept by threads and beside blocks in use", free.small,
                 free.small_back);
        add_kept("freed blocks in the quarantine, or lost by a fork", free.waiting, 0);
    }

    void add(Row row) {
        row.bytes = std::min(row.bytes, left_);
        row.back_bytes = std::min(row.back_bytes, row.bytes);
        left_ -= row.bytes;
        if (row.bytes != 0) rows_.push_back(std::move(row));
    }

    const ProcessSnapshot& snapshot_;
    const std::uint64_t resident_;
    std::uint64_t left_;  // without a row yet
    std::uint64_t free_bytes_ = 0;
    std::uint64_t in_use_bytes_ = 0;
    std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> rows_of_pools(const ProcessSnapshot& snapshot, std::uint64_t resident) {
    return PoolRows(snapshot, resident).make();
}

}  // namespace tensorpool::command::explain
