#include <iterator>

#include <tensorpool/context_statistics.hpp>
#include <tensorpool/snapshot.hpp>

#include "base/text.hpp"
#include "read/record_text.hpp"
#include "snapshot/typed_records.hpp"
#include "statistics/sums/pool_tables.hpp"

namespace tensorpool {
namespace {

using base::quoted;
using read::json_members;

std::string member(const char* name, std::uint64_t value) {
    return quoted(name) + ':' + std::to_string(value);
}

std::string member(const char* name, const std::string& json) {
    return quoted(name) + ':' + json;
}

std::string json_of(const std::map<std::string, std::uint64_t>& left_out) {
    std::string out = "{";
    for (const auto& [list, number] : left_out) {
        if (out.size() > 1) out += ',';
        out += member(list.c_str(), number);
    }
    return out + '}';
}

std::string json_of(const ThreadStatistics& thread) {
    namespace table = snapshots::threads;
    return '{' + member("name", quoted(thread.name.c_str())) + ',' +
           json_members(table::table, table::values_of(thread)) + '}';
}

std::string head_of(const ProcessSnapshot& snapshot) {
    return member("version", snapshot.version) + ',' + member("process", snapshot.process) + ',' +
           member("process_name", quoted(snapshot.process_name.c_str())) + ',' +
           member("library_version", quoted(snapshot.library_version.c_str())) + ',' +
           member("time_ns", snapshot.time_ns) + ',' +
           member("time_unix_ns", snapshot.time_unix_ns) + ',' +
           member("consistent", snapshot.consistent ? "true" : "false");
}

template <class Statistics>
std::string json(const Statistics& one) {
    return read::json_of(snapshots::table_of<Statistics>(), snapshots::record_of(one));
}
template <class Statistics>
std::string text(const Statistics& one) {
    return read::report_of(snapshots::group_of(std::vector<Statistics>{one}));
}
std::string size(std::uint64_t bytes) {
    return base::BytesText(bytes).c_str();
}

/// Returns a duration such as "5.2 s" or "12 ms".
std::string duration_text(std::uint64_t ns) {
    const double seconds = static_cast<double>(ns) / 1e9;
    char text[32];
    std::snprintf(text, sizeof text, seconds < 1 ? "%.0f ms" : "%.1f s",
                  seconds < 1 ? seconds * 1000 : seconds);
    return text;
}

using base::add_line;
using base::BytesText;
using base::percent;

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

template <class Part>
void add_row(std::string& out, const char* name, const Part& part, std::uint64_t free) {
    if (part.allocations == 0) return;
    add_line(out, "  %-9s %10s %10s %13llu %6.1f %% %7.1f %%", name,
             BytesText(part.in_use_bytes).c_str(), BytesText(free).c_str(),
             static_cast<unsigned long long>(part.allocations),
             percent(part.cache_hits, part.allocations),
             waste_percent(part.requested_bytes, part.allocated_bytes));
}

std::uint64_t magnitude(std::int64_t value) noexcept {
    const auto bits = static_cast<std::uint64_t>(value);
    return value < 0 ? -bits : bits;
}

std::string size(std::int64_t bytes) {
    return BytesText(magnitude(bytes)).c_str();
}

/// Formats a number of blocks without a sign, such as "3 blocks".
std::string count(std::int64_t blocks, const char* what) {
    const std::string out = std::to_string(magnitude(blocks)) + ' ' + what;
    return magnitude(blocks) == 1 ? out : out + 's';
}

/// Formats the growth of one bucket, such as "3 blocks of 64 B" or "1 block of 1 KiB fewer".
std::string part(std::int64_t blocks, unsigned bucket) {
    const BytesText bytes(detail::bucket_bytes(bucket));
    return count(blocks, "block") + " of " + bytes.c_str() + (blocks < 0 ? " fewer" : "");
}

/// Formats the growth of large blocks, such as "1 large block of 2 MiB", "2 large blocks of 2 MiB
/// in all" or "1 large block fewer, of 2 MiB more in all".
std::string large_part(const ScopeGrowth& growth) {
    const std::string bytes = size(growth.large_bytes);
    const char* const sign = growth.large_bytes < 0 ? "less" : "more";
    if (growth.large_blocks == 0) return "large blocks of " + bytes + ' ' + sign + " in all";
    std::string out = count(growth.large_blocks, "large block");
    if (growth.large_blocks < 0) out += " fewer";
    if ((growth.large_bytes < 0) != (growth.large_blocks < 0)) {
        return out + ", of " + bytes + ' ' + sign + " in all";
    }
    return out + " of " + bytes + (magnitude(growth.large_blocks) == 1 ? "" : " in all");
}

std::string headline(std::int64_t bytes) {
    if (bytes < 0) return "grew in blocks, while bytes shrank by " + size(bytes);
    return bytes == 0 ? "grew in blocks, not in bytes" : "grew by " + size(bytes);
}

}  // namespace

std::vector<RecordGroup> record_groups(const ProcessSnapshot& snapshot) {
    using snapshots::group_of;
    std::vector<RecordGroup> groups = {
        group_of(snapshot.arenas),  group_of(snapshot.scratches, "scratches"),
        group_of(snapshot.devices), group_of(snapshot.planned),
        group_of(snapshot.budgets), group_of(snapshot.stashes),
        group_of(snapshot.scopes),  group_of(snapshot.device_streams)};
    groups.insert(groups.end(), snapshot.others.begin(), snapshot.others.end());
    return groups;
}

std::string to_json(const ProcessSnapshot& snapshot) {
    std::string out = '{' + head_of(snapshot);
    const auto add = [&](const std::string& name, const std::string& json) {
        out += ',' + member(name.c_str(), json);
    };
    namespace table = snapshots::processes;
    out += ',' + json_members(table::table, table::values_of(snapshot));
    add("left_out", json_of(snapshot.left_out));
    add("pools",
        read::json_list(snapshot.pools, [](const PoolStatistics& pool) { return to_json(pool); }));
    for (const RecordGroup& group : record_groups(snapshot)) add(group.name, to_json(group));
    add("threads", read::json_list(snapshot.threads,
                                   [](const ThreadStatistics& thread) { return json_of(thread); }));
    add("entries", std::to_string(snapshot.entries));
    return out + '}';
}

std::string to_text(const Snapshot& snapshot) {
    std::string out;
    for (const PoolStatistics& pool : snapshot.pools) out += to_text(pool);
    for (const DeviceStatistics& device : snapshot.devices) out += to_text(device);
    for (const PlannedArenaStatistics& arena : snapshot.planned) out += to_text(arena);
    const std::vector<RecordGroup> groups = record_groups(snapshot);
    for (const RecordGroup& group : groups) {
        if (group.name != "devices" && group.name != "planned") out += to_text(groups, group);
    }
    return out;
}

std::string to_json(const ArenaStatistics& one) {
    return json(one);
}
std::string to_json(const DeviceStatistics& one) {
    return json(one);
}
std::string to_json(const PlannedArenaStatistics& one) {
    return json(one);
}
std::string to_json(const BudgetStatistics& one) {
    return json(one);
}
std::string to_json(const StashStatistics& one) {
    return json(one);
}
std::string to_json(const ScopeStatistics& one) {
    return json(one);
}
std::string to_json(const DeviceStreamStatistics& one) {
    return json(one);
}

std::string to_text(const ArenaStatistics& one) {
    return text(one);
}
std::string to_text(const DeviceStatistics& one) {
    return text(one);
}
std::string to_text(const PlannedArenaStatistics& one) {
    return text(one);
}

std::string to_text(const DeviceStreamStatistics& stream) {
    const std::string name =
        stream.stream == 0 ? "the default stream" : "stream " + std::to_string(stream.stream);
    const bool is_graph = stream.capture != 0;
    std::string text = (is_graph ? "graphs captured on " : "") + name;
    if (stream.held_bytes != 0) {
        text += (is_graph ? " hold " : " holds ") + size(stream.held_bytes) + ", of which " +
                size(stream.used_bytes - stream.parked_bytes) + " are in use";
        if (is_graph) text += ", until they are released";
    }
    if (stream.waiting_bytes == 0) return text;
    text += (stream.held_bytes != 0 ? "; " : ": ") + size(stream.waiting_bytes) +
            " that were freed have waited for its work";
    if (stream.waiting_ns != 0) text += " for " + duration_text(stream.waiting_ns);
    return text;
}

const char* to_string(PlannedArenaStatistics::State state) noexcept {
    constexpr const char* words[] = {"learning", "planning", "serving", "unknown"};
    return words[std::min(static_cast<unsigned>(state), 3U)];
}
const char* to_string(StashStatistics::Kind kind) noexcept {
    constexpr const char* words[] = {"stashes", "map", "frozen", "unknown"};
    return words[std::min(static_cast<unsigned>(kind), 3U)];
}

std::string to_json(const ContextStatistics& statistics) {
    return "{\"pool\":" + to_json(statistics.pool) + ",\"arena\":" + to_json(statistics.arena) +
           ",\"scratch\":" + to_json(statistics.scratch) + '}';
}

std::string to_text(const ContextStatistics& statistics) {
    const bool has_scratch = statistics.scratch.id != 0;
    return to_text(statistics.pool) + to_text(statistics.arena) +
           (has_scratch ? to_text(statistics.scratch) : std::string());
}

std::string to_json(const PoolStatistics& pool) {
    namespace tables = tensorpool::statistics;
    using read::json_members;
    const auto members = [](const tables::RecordTable& table, const std::uint64_t& first) {
        return json_members(table, {&first, table.shown()});
    };
    std::string out = "{\"version\":" + std::to_string(pool.version);
    out += ",\"name\":" + quoted(pool.name) + ',' + members(tables::pools::table, pool.id);
    out += ",\"failures_by_limit\":" +
           read::json_list(pool.failures_by_limit,
                           [](std::uint64_t failures) { return std::to_string(failures); });
    out += ",\"buckets\":" + read::json_list(pool.buckets, [&](const BucketStatistics& bucket) {
               return '{' + members(tables::buckets::table, bucket.block_bytes) + '}';
           });
    return out + ",\"large\":{" + members(tables::large_blocks::table, pool.large.in_use_bytes) +
           "}}";
}

std::string to_text(const PoolStatistics& statistics) {
    std::string out;
    add_headline(out, statistics);
    if (statistics.allocations == 0) return out;
    add_line(out, "  %-9s %10s %10s %13s %8s %9s", "block", "in use", "free", "allocations",
             "cached", "rounding");
    for (const BucketStatistics& bucket : statistics.buckets) {
        const std::uint64_t free = bucket.capacity_bytes > bucket.in_use_bytes
                                       ? bucket.capacity_bytes - bucket.in_use_bytes
                                       : 0;
        add_row(out, BytesText(bucket.block_bytes).c_str(), bucket, free);
    }
    add_row(out, "larger", statistics.large, statistics.large.cached_bytes);
    return out;
}

std::string to_text(const ScopeGrowth& growth) {
    if (!growth.grew) return "did not grow";
    std::string out = headline(growth.bytes);
    const char* separator = ": ";
    const auto append = [&](const std::string& text) {
        out += separator + text;
        separator = ", ";
    };
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        if (growth.blocks[bucket] != 0) append(part(growth.blocks[bucket], bucket));
    }
    if (growth.large_blocks != 0 || growth.large_bytes != 0) append(large_part(growth));
    return out;
}

}  // namespace tensorpool
