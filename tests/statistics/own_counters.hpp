#pragma once

#include "statistics/add_records.hpp"
#include "statistics/segment/pool_counters.hpp"

namespace tensorpool::testing {

struct OwnPlace {
    statistics::OwnedRecord<statistics::PoolRecord> place = statistics::own_pool("slots", 0);
};

/// The slots of a pool that has nothing else.
struct OwnCounters : OwnPlace, statistics::PoolCounters {
    OwnCounters() : PoolCounters(place) {}
    std::uint64_t record_bytes() const { return place->totals.record_bytes; }
    /// What others see of it.
    std::uint64_t left_out_allocations() const { return place->left_out.buckets[0].allocations; }
};

}  // namespace tensorpool::testing
