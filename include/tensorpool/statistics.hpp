#pragma once

/// @file
/// The statistics of a pool. All sizes are bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// The statistics of one bucket. Totals run since the pool was made.
///
/// If the pool serves small requests of `malloc` (`tensorpool run --interpose-min`), blocks of
/// finer sizes, 16 to 57,344 bytes, are counted in the bucket that would have served the request,
/// with their own bytes.
struct BucketStatistics {
    /// The size of a block, the largest that counts here.
    std::uint64_t block_bytes;
    /// The bytes of blocks that callers hold.
    std::uint64_t in_use_bytes;
    /// The free bytes in the magazines of threads.
    std::uint64_t parked_bytes;
    /// The bytes of the spans that the bucket holds.
    std::uint64_t capacity_bytes;
    /// The total number of allocations.
    std::uint64_t allocations;
    /// The total number of deallocations.
    std::uint64_t deallocations;
    /// The total of the requested sizes.
    std::uint64_t requested_bytes;
    /// The total of the block sizes that served the requests.
    std::uint64_t allocated_bytes;
    /// The allocations that the thread's magazines served.
    std::uint64_t cache_hits;
    /// The allocations that went to the depot or to spans.
    std::uint64_t cache_misses;
    /// The misses that a magazine from the depot served.
    std::uint64_t depot_hits;
    /// The misses for which the pool had to grow.
    std::uint64_t system_misses;
    /// The free bytes in magazines that no thread holds.
    std::uint64_t depot_bytes;
};

/// The statistics of large blocks: those above 64 KiB or with a large alignment, which are runs of
/// whole pages. Totals run since the pool was made.
struct LargeStatistics {
    /// The bytes of blocks that callers hold.
    std::uint64_t in_use_bytes;
    /// The free bytes in the large-block cache.
    std::uint64_t cached_bytes;
    /// The free bytes in the magazines of threads.
    std::uint64_t parked_bytes;
    /// The total number of allocations.
    std::uint64_t allocations;
    /// The total number of deallocations.
    std::uint64_t deallocations;
    /// The total of the requested sizes.
    std::uint64_t requested_bytes;
    /// The total of the block sizes that served the requests.
    std::uint64_t allocated_bytes;
    /// The allocations that a thread's magazine or the large-block cache served.
    std::uint64_t cache_hits;
    /// All other allocations.
    std::uint64_t cache_misses;
    /// The misses for which the pool had to grow.
    std::uint64_t system_misses;
};

/// The statistics of one pool at one moment.
///
/// They are exact if no call is under way. Otherwise each value is one that held while the snapshot
/// was taken, and the bytes in use are never below their true value.
struct PoolStatistics {
    /// The version of this structure.
    static constexpr std::uint32_t current_version = 2;

    /// The version of the structure that was filled in.
    std::uint32_t version = current_version;
    /// The pool's name, zero-terminated.
    char name[48] = {};
    /// A number that no other pool or arena of the process ever has.
    std::uint64_t id = 0;
    /// The bytes of blocks that callers hold.
    std::uint64_t in_use_bytes = 0;
    /// The committed bytes, which include free memory but not the pool's records.
    std::uint64_t capacity_bytes = 0;
    /// The address space that the pool holds.
    std::uint64_t reserved_bytes = 0;
    /// The limit of the capacity, `max_capacity`; 0 means no limit.
    std::uint64_t limit_bytes = 0;
    /// The highest value of `in_use_bytes` so far.
    ///
    /// Free blocks that threads and depots keep for reuse count as in use. So the value is never
    /// below an `in_use_bytes` that a snapshot showed, and never above `peak_capacity_bytes`.
    std::uint64_t peak_in_use_bytes = 0;
    /// The highest value of `capacity_bytes` so far.
    std::uint64_t peak_capacity_bytes = 0;
    /// The highest value of `reserved_bytes` so far.
    std::uint64_t peak_reserved_bytes = 0;
    /// The total of the requested sizes.
    std::uint64_t requested_bytes = 0;
    /// The total of the block sizes that served the requests. Its excess over `requested_bytes` is
    /// the waste by rounding.
    std::uint64_t allocated_bytes = 0;
    /// The total number of allocations.
    std::uint64_t allocations = 0;
    /// The total number of deallocations.
    std::uint64_t deallocations = 0;
    /// The allocations that a thread's magazines or the large-block cache served.
    std::uint64_t cache_hits = 0;
    /// All other allocations.
    std::uint64_t cache_misses = 0;
    /// The requests that could not be met.
    std::uint64_t failures = 0;
    /// The misses for which the pool had to grow.
    std::uint64_t system_misses = 0;
    /// The free bytes in the magazines of threads.
    std::uint64_t parked_bytes = 0;
    /// The free bytes in magazines that no thread holds.
    std::uint64_t depot_bytes = 0;
    /// The free bytes in the spans of buckets.
    std::uint64_t span_bytes = 0;
    /// The free bytes in the large-block cache.
    std::uint64_t cached_bytes = 0;
    /// The free committed bytes in runs of whole pages.
    std::uint64_t free_bytes = 0;
    /// The part of `free_bytes` that was never touched, which takes no memory.
    std::uint64_t untouched_bytes = 0;
    /// The part of `span_bytes` that takes no memory: it was never touched, or its pages were given
    /// back. Estimated for blocks smaller than a page.
    std::uint64_t untouched_span_bytes = 0;
    /// The part of `span_bytes` that `trim` returns to the system: whole pages that hold neither
    /// blocks in use nor blocks in magazines, without those that take no memory.
    std::uint64_t trimmable_span_bytes = 0;
    /// The bytes parked by threads that a fork left behind.
    std::uint64_t lost_bytes = 0;
    /// The free bytes that may stay committed, RetentionPolicy::bytes; UINT64_MAX means no limit.
    std::uint64_t retain_bytes = 0;
    /// The length of a retention period, RetentionPolicy::milliseconds.
    std::uint64_t retain_ms = 0;
    /// The capacity that `reserve` prepared; the retention policy does not reduce it.
    std::uint64_t prepared_bytes = 0;
    /// The bytes of the pool's own records, which are not part of the capacity.
    std::uint64_t record_bytes = 0;
    /// How often memory was committed.
    std::uint64_t growths = 0;
    /// The total bytes committed by growth.
    std::uint64_t grown_bytes = 0;
    /// How often memory was given back to the system.
    std::uint64_t give_backs = 0;
    /// The total bytes given back to the system.
    std::uint64_t given_back_bytes = 0;
    /// The number of threads that have a cache for this pool now.
    std::uint64_t threads = 0;
    /// The number of guarded blocks that callers hold (`Checks::sampled`).
    std::uint64_t guarded_blocks = 0;
    /// The number of blocks that were guarded so far.
    std::uint64_t guarded_allocations = 0;
    /// The bytes of freed blocks that wait before they are reused (`Checks::hardened`).
    std::uint64_t quarantined_bytes = 0;
    /// The failures by the limit that was met: `failures_by_limit[unsigned(LimitKind::capacity)]`.
    std::array<std::uint64_t, 6> failures_by_limit = {};

    /// The statistics of each bucket, the smallest blocks first.
    std::array<BucketStatistics, detail::bucket_count> buckets = {};
    /// The statistics of large blocks.
    LargeStatistics large = {};

    /// Returns the bytes in use divided by the capacity, from 0 to 1; 0 if there is no capacity.
    double utilization_ratio() const noexcept {
        return capacity_bytes == 0
                   ? 0.0
                   : static_cast<double>(in_use_bytes) / static_cast<double>(capacity_bytes);
    }
};

/// Returns one JSON object whose keys are the names of the fields of PoolStatistics.
TENSORPOOL_API std::string to_json(const PoolStatistics& statistics);
/// Returns the metrics in the text exposition format of Prometheus (version 0.0.4), with this
/// process's `pid` and `process` and the pool's name as labels. HELP and TYPE appear once for each
/// name.
TENSORPOOL_API std::string to_prometheus(const PoolStatistics& statistics);
/// Returns a report for people: a headline, then a line for each bucket that was used. It ends with
/// a newline.
TENSORPOOL_API std::string to_text(const PoolStatistics& statistics);

}  // namespace tensorpool
