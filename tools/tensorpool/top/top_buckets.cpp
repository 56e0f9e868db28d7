#include <algorithm>
#include <array>

#include "common/cells.hpp"
#include "common/totals.hpp"
#include "top/top_tables.hpp"

namespace tensorpool::command {
namespace {

constexpr unsigned large = detail::bucket_count;

/// The statistics of a bucket. Large blocks are treated as one more bucket.
struct BucketRow {
    std::uint64_t in_use_bytes = 0;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t allocations = 0;
    std::uint64_t hits = 0;
    std::uint64_t requested_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t highest = 0;  ///< with several pools, the sum of their values
};
using BucketRows = std::array<BucketRow, large + 1>;

template <class Part>
void add(BucketRow& row, const Part& part) {
    row.in_use_bytes += part.in_use_bytes;
    row.allocations += part.allocations;
    row.hits += part.cache_hits;
    row.requested_bytes += part.requested_bytes;
    row.allocated_bytes += part.allocated_bytes;
}

BucketRows rows_of(const ProcessSnapshot& snapshot, std::uint64_t chosen, const Highest& highest) {
    BucketRows rows;
    for (const PoolStatistics& pool : snapshot.pools) {
        if (chosen != 0 && pool.id != chosen) continue;
        for (unsigned bucket = 0; bucket < large; ++bucket) {
            add(rows[bucket], pool.buckets[bucket]);
            rows[bucket].capacity_bytes += pool.buckets[bucket].capacity_bytes;
            rows[bucket].highest += highest.get(bucket_key(pool.id, bucket));
        }
        add(rows[large], pool.large);
        rows[large].capacity_bytes += pool.large.in_use_bytes + pool.large.cached_bytes;
        rows[large].highest += highest.get(bucket_key(pool.id, large));
    }
    return rows;
}

double seconds_between(const WatchedProcess& watched) {
    if (!watched.before || !watched.now || watched.before->time_ns >= watched.now->time_ns)
        return 0;
    return static_cast<double>(watched.now->time_ns - watched.before->time_ns) * 1e-9;
}

}  // namespace

Table buckets_table(const TopData& data, std::uint64_t pool, Sizes sizes) {
    Table table;
    table.columns = {text_column("BLOCKS", 8), size_column("IN USE"),  size_column("FREE"),
                     size_column("CAPACITY"),  size_column("HIGHEST"), part_column("UTIL"),
                     part_column("WASTE"),     part_column("HITS"),    count_column("ALLOC/s"),
                     count_column("ALLOCS")};
    if (!data.chosen || !data.chosen->now) return table;
    const BucketRows rows = rows_of(*data.chosen->now, pool, data.highest);
    const double seconds = seconds_between(*data.chosen);
    const BucketRows before =
        seconds > 0 ? rows_of(*data.chosen->before, pool, data.highest) : rows;
    for (unsigned bucket = 0; bucket <= large; ++bucket) {
        const BucketRow& row = rows[bucket];
        const double more = row.allocations < before[bucket].allocations
                                ? 0
                                : static_cast<double>(row.allocations - before[bucket].allocations);
        const std::uint64_t block = detail::bucket_bytes(bucket);
        table.rows.push_back(
            {{bucket == large ? "large" : format_size(block, sizes), static_cast<double>(block)},
             size_cell(row.in_use_bytes, sizes),
             size_cell(row.capacity_bytes - std::min(row.in_use_bytes, row.capacity_bytes), sizes),
             size_cell(row.capacity_bytes, sizes),
             size_cell(row.highest, sizes),
             part_cell(row.in_use_bytes, row.capacity_bytes),
             part_cell(row.allocated_bytes - std::min(row.requested_bytes, row.allocated_bytes),
                       row.allocated_bytes),
             part_cell(row.hits, row.allocations),
             count_cell(seconds > 0 ? more / seconds : 0),
             count_cell(row.allocations)});
        table.keys.push_back(std::to_string(bucket));
    }
    return table;
}

}  // namespace tensorpool::command
