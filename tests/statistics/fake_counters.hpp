#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/scope_statistics.hpp>

#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::testing {

/// Counters of a pool that does not exist. The test counts in them directly. The thread that
/// creates them uses them.
class FakeCounters {
public:
    FakeCounters() { begin(); }
    ~FakeCounters() { end(); }
    FakeCounters(const FakeCounters&) = delete;
    FakeCounters& operator=(const FakeCounters&) = delete;

    void begin() { statistics::begin(of_thread, counters, 0); }
    void end() { statistics::end(of_thread); }

    /// Counts blocks of a bucket, each requested with one byte less than its size.
    void allocate(unsigned bucket, std::uint64_t blocks = 1) {
        detail::BucketCounters& counted = counters.buckets[bucket];
        detail::add(counted.allocations, blocks);
        detail::add(counted.requested_bytes, blocks * (detail::bucket_bytes(bucket) - 1));
    }
    void free(unsigned bucket, std::uint64_t blocks = 1) {
        detail::add_release(counters.buckets[bucket].deallocations, blocks);
    }
    void allocate_large(std::uint64_t bytes) {
        detail::add(counters.large.allocations, 1);
        detail::add(counters.large.requested_bytes, bytes - 1);
        detail::add(counters.large.allocated_bytes, bytes);
        statistics::look_at_scopes();
    }
    void free_large(std::uint64_t bytes) {
        detail::add_release(counters.large.deallocations, 1);
        detail::add_release(counters.large.deallocated_bytes, bytes);
        statistics::look_at_scopes();
    }

    detail::ThreadCounters counters = {};
    statistics::CountersLink of_thread;
};

/// Returns the statistics in the segment of the scopes of this name.
inline ScopeStatistics statistics_of_scope(std::string_view name) {
    const statistics::ScopeRecord& record =
        *statistics::segment().find_or_add<statistics::ScopeRecord>(name);
    ScopeStatistics statistics;
    statistics.calls = record.calls;
    statistics.open = record.open;
    statistics.allocations = record.allocations;
    statistics.deallocations = record.deallocations;
    statistics.requested_bytes = record.requested_bytes;
    statistics.allocated_bytes = record.allocated_bytes;
    statistics.deallocated_bytes = record.deallocated_bytes;
    statistics.peak_bytes = record.peak_bytes;
    statistics.out_of_order = record.out_of_order;
    return statistics;
}

}  // namespace tensorpool::testing
