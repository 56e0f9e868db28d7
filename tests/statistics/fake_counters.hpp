#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/scope_statistics.hpp>

#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::testing {

/// A slot of a pool that is not there: what a thread does with it is counted, and nothing else. The
/// thread that makes it counts in it.
class FakeCounters {
public:
    FakeCounters() { begin(); }
    ~FakeCounters() { end(); }
    FakeCounters(const FakeCounters&) = delete;
    FakeCounters& operator=(const FakeCounters&) = delete;

    void begin() { statistics::begin(of_thread, counters, 0); }
    void end() { statistics::end(of_thread); }

    /// Blocks of a bucket, each asked for with one byte less than it has.
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

/// What stands in the segment for scopes of this name.
inline ScopeStatistics figures_of_scope(std::string_view name) {
    const statistics::ScopeRecord& record = *statistics::segment().find_or_add_scope(name);
    ScopeStatistics figures;
    figures.calls = record.calls;
    figures.open = record.open;
    figures.allocations = record.allocations;
    figures.deallocations = record.deallocations;
    figures.requested_bytes = record.requested_bytes;
    figures.allocated_bytes = record.allocated_bytes;
    figures.deallocated_bytes = record.deallocated_bytes;
    figures.peak_bytes = record.peak_bytes;
    figures.out_of_order = record.out_of_order;
    return figures;
}

}  // namespace tensorpool::testing
