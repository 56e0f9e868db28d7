#pragma once

/// @file
/// What a pool did and holds. All sizes are bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// One bucket. Totals run since the pool was made. Where the pool serves small requests of `malloc`
/// (`tensorpool run --interpose-min`), blocks of finer sizes, 16 to 57,344 bytes, count in the
/// bucket that would have served the request, with their own bytes.
struct BucketStatistics {
    std::uint64_t block_bytes;      ///< size of a block, the largest that counts here
    std::uint64_t in_use_bytes;     ///< of blocks that callers hold
    std::uint64_t parked_bytes;     ///< free, in the magazines of threads
    std::uint64_t capacity_bytes;   ///< of the spans that the bucket holds
    std::uint64_t allocations;      ///< total
    std::uint64_t deallocations;    ///< total
    std::uint64_t requested_bytes;  ///< total of what was asked for
    std::uint64_t allocated_bytes;  ///< total of what was handed out for it
    std::uint64_t cache_hits;       ///< allocations that the thread's magazines served
    std::uint64_t cache_misses;     ///< allocations that went to the depot or to spans
    std::uint64_t depot_hits;       ///< misses that a magazine from the depot served
    std::uint64_t system_misses;    ///< misses for which the pool had to grow
    std::uint64_t depot_bytes;      ///< free, in magazines that no thread holds
};

/// Blocks above 64 KiB, and blocks of large alignment: whole pages.
struct LargeStatistics {
    std::uint64_t in_use_bytes;
    std::uint64_t cached_bytes;  ///< free, in the large-block cache
    std::uint64_t parked_bytes;  ///< free, in the magazines of threads
    std::uint64_t allocations;
    std::uint64_t deallocations;
    std::uint64_t requested_bytes;
    std::uint64_t allocated_bytes;
    std::uint64_t cache_hits;
    std::uint64_t cache_misses;
    std::uint64_t system_misses;  ///< misses for which the pool had to grow
};

/// A snapshot of one pool. Exact when no call is under way; otherwise each figure is one that held
/// while the snapshot was taken, and what is in use never reads below what it was.
struct PoolStatistics {
    static constexpr std::uint32_t current_version = 2;

    std::uint32_t version = current_version;
    char name[48] = {};
    std::uint64_t id = 0;  ///< unlike that of any other pool or arena of the process, ever

    std::uint64_t in_use_bytes = 0;    ///< of blocks that callers hold
    std::uint64_t capacity_bytes = 0;  ///< committed, free memory included, records not
    std::uint64_t reserved_bytes = 0;  ///< address space lent to the pool
    std::uint64_t limit_bytes = 0;     ///< max_capacity; 0 means none
    /// The most bytes in use at once. What thread caches park is counted as in use: the figure is
    /// never below any `in_use_bytes` that a snapshot showed, and above the true peak by at most
    /// 8 MiB for each thread that used the pool at that time, 32 MiB where it serves small requests
    /// of `malloc`.
    std::uint64_t peak_in_use_bytes = 0;
    std::uint64_t peak_capacity_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;

    /// Running totals, counted at allocation; the second over the first is the waste by rounding.
    std::uint64_t requested_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t cache_hits =
        0;  ///< allocations served by a thread's magazines or the large cache
    std::uint64_t cache_misses = 0;  ///< all others
    std::uint64_t failures = 0;      ///< requests that could not be met
    /// The same by the limit that was met: `failures_by_limit[unsigned(LimitKind::capacity)]`.
    std::array<std::uint64_t, 6> failures_by_limit = {};
    std::uint64_t system_misses = 0;  ///< misses for which the pool had to grow

    std::uint64_t parked_bytes = 0;      ///< free, in the magazines of threads
    std::uint64_t depot_bytes = 0;       ///< free, in magazines that no thread holds
    std::uint64_t span_bytes = 0;        ///< free, in the spans of buckets
    std::uint64_t cached_bytes = 0;      ///< free, in the large-block cache
    std::uint64_t free_bytes = 0;        ///< free and committed, in runs of whole pages
    std::uint64_t lost_bytes = 0;        ///< parked by threads that a fork left behind
    std::uint64_t record_bytes = 0;      ///< the pool's own records, beside capacity
    std::uint64_t growths = 0;           ///< times that memory was committed
    std::uint64_t grown_bytes = 0;       ///< total of that
    std::uint64_t give_backs = 0;        ///< times that memory was given back to the system
    std::uint64_t given_back_bytes = 0;  ///< total of that
    std::uint64_t threads = 0;           ///< threads that have a cache for this pool now

    std::array<BucketStatistics, detail::bucket_count> buckets = {};
    LargeStatistics large = {};
};

/// One JSON object, the names those of the fields above.
TENSORPOOL_API std::string to_json(const PoolStatistics& statistics);
/// The text exposition format of Prometheus (version 0.0.4), with this process's `pid` and
/// `process` and the pool's name as labels; HELP and TYPE once for each name.
TENSORPOOL_API std::string to_prometheus(const PoolStatistics& statistics);
/// A report for people: a headline, then a line for each bucket that was used. Ends with a newline.
TENSORPOOL_API std::string to_text(const PoolStatistics& statistics);

}  // namespace tensorpool
