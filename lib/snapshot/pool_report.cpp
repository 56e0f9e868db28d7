#include <string>

#include "base/report_text.hpp"
#include "base/text.hpp"
#include "read/record_text.hpp"
#include "statistics/sums/pool_tables.hpp"

namespace tensorpool {
namespace {

using base::add_line;
using base::BytesText;
using base::percent;
using base::quoted;

/// Returns the percentage that rounding added. A snapshot taken during a call may count its request
/// before its block.
double waste_percent(std::uint64_t requested, std::uint64_t allocated) noexcept {
    return allocated > requested ? percent(allocated - requested, requested) : 0.0;
}

void add_headline(std::string& out, const PoolStatistics& statistics) {
    add_line(out, "tensorpool: pool '%s'", statistics.name);
    add_line(out, "  in use    %s of %s committed (%.1f %%), peak %s of %s",
             BytesText(statistics.in_use_bytes).c_str(),
             BytesText(statistics.capacity_bytes).c_str(),
             percent(statistics.in_use_bytes, statistics.capacity_bytes),
             BytesText(statistics.peak_in_use_bytes).c_str(),
             BytesText(statistics.peak_capacity_bytes).c_str());
    add_line(out, "  calls     %llu allocations, %llu deallocations, %llu failures",
             static_cast<unsigned long long>(statistics.allocations),
             static_cast<unsigned long long>(statistics.deallocations),
             static_cast<unsigned long long>(statistics.failures));
    add_line(out,
             "  served    %.1f %% from caches; %s requested, %s allocated (+%.1f %% by rounding)",
             percent(statistics.cache_hits, statistics.allocations),
             BytesText(statistics.requested_bytes).c_str(),
             BytesText(statistics.allocated_bytes).c_str(),
             waste_percent(statistics.requested_bytes, statistics.allocated_bytes));
    add_line(out, "  free      %s in threads, %s in the large-block cache, %s in whole pages",
             BytesText(statistics.parked_bytes).c_str(), BytesText(statistics.cached_bytes).c_str(),
             BytesText(statistics.free_bytes).c_str());
    add_line(out, "  system    grew %llu times by %s, gave back %llu times %s, records take %s",
             static_cast<unsigned long long>(statistics.growths),
             BytesText(statistics.grown_bytes).c_str(),
             static_cast<unsigned long long>(statistics.give_backs),
             BytesText(statistics.given_back_bytes).c_str(),
             BytesText(statistics.record_bytes).c_str());
    if (statistics.limit_bytes != 0) {
        add_line(out, "  limit     %s", BytesText(statistics.limit_bytes).c_str());
    }
    if (statistics.lost_bytes != 0) {
        add_line(out, "  lost      %s, parked by threads that did not survive a fork",
                 BytesText(statistics.lost_bytes).c_str());
    }
}

void add_row(std::string& out, const char* name, std::uint64_t in_use, std::uint64_t free,
             std::uint64_t allocations, std::uint64_t hits, std::uint64_t requested,
             std::uint64_t allocated) {
    add_line(out, "  %-9s %10s %10s %13llu %6.1f %% %7.1f %%", name, BytesText(in_use).c_str(),
             BytesText(free).c_str(), static_cast<unsigned long long>(allocations),
             percent(hits, allocations), waste_percent(requested, allocated));
}

}  // namespace

std::string to_json(const PoolStatistics& pool) {
    namespace tables = tensorpool::statistics;
    using read::json_members;
    const auto members = [](const tables::RecordTable& table, const std::uint64_t& first) {
        return json_members(table, {&first, table.shown()});
    };
    std::string out = "{\"version\":" + std::to_string(pool.version);
    out += ",\"name\":" + quoted(pool.name) + ',' + members(tables::pools::table, pool.id);
    out += ",\"failures_by_limit\":";
    for (const std::uint64_t& failures : pool.failures_by_limit) {
        out += (&failures == pool.failures_by_limit.data() ? '[' : ',');
        out += std::to_string(failures);
    }
    out += "],\"buckets\":[";
    for (const BucketStatistics& bucket : pool.buckets) {
        if (&bucket != &pool.buckets.front()) out += ',';
        out += '{' + members(tables::buckets::table, bucket.block_bytes) + '}';
    }
    return out + "],\"large\":{" + members(tables::large_blocks::table, pool.large.in_use_bytes) +
           "}}";
}

std::string to_text(const PoolStatistics& statistics) {
    std::string out;
    add_headline(out, statistics);
    if (statistics.allocations == 0) return out;
    add_line(out, "  %-9s %10s %10s %13s %8s %9s", "block", "in use", "free", "allocations",
             "cached", "rounding");
    for (const BucketStatistics& bucket : statistics.buckets) {
        if (bucket.allocations == 0) continue;
        const std::uint64_t free = bucket.capacity_bytes > bucket.in_use_bytes
                                       ? bucket.capacity_bytes - bucket.in_use_bytes
                                       : 0;
        add_row(out, BytesText(bucket.block_bytes).c_str(), bucket.in_use_bytes, free,
                bucket.allocations, bucket.cache_hits, bucket.requested_bytes,
                bucket.allocated_bytes);
    }
    const LargeStatistics& large = statistics.large;
    if (large.allocations != 0) {
        add_row(out, "larger", large.in_use_bytes, large.cached_bytes, large.allocations,
                large.cache_hits, large.requested_bytes, large.allocated_bytes);
    }
    return out;
}

}  // namespace tensorpool
