#pragma once

#include "statistics/add_records.hpp"
#include "statistics/segment/pool_counters.hpp"

namespace tensorpool::testing {

struct OwnPoolRecord {
    statistics::OwnedRecord<statistics::PoolRecord> record = statistics::own_pool("counters", 0);
};

/// The counters of a pool that has nothing else.
struct OwnCounters : OwnPoolRecord, statistics::PoolCounters {
    OwnCounters() : PoolCounters(record) {}
    std::uint64_t record_bytes() const { return record->totals.record_bytes; }
    /// Allocations that other processes see for counters without a record.
    std::uint64_t left_out_allocations() const { return record->left_out.buckets[0].allocations; }
};

}  // namespace tensorpool::testing
