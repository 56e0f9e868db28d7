#pragma once

/// @file
/// The tables of the views of `top`.

#include "common/record_table.hpp"
#include "common/totals.hpp"
#include "formats/profile/formats.hpp"
#include "top/top_data.hpp"
#include "top/top_state.hpp"

namespace tensorpool::command {

inline ProcessRates rates_of(const WatchedProcess& watched) {
    return watched.before && watched.now ? difference(*watched.before, *watched.now)
                                         : ProcessRates{};
}

inline const ProcessSnapshot* shown(const TopData& data) {
    return data.chosen && data.chosen->now ? &*data.chosen->now : nullptr;
}

inline constexpr unsigned large = detail::bucket_count;

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

inline BucketRows rows_of(const ProcessSnapshot& snapshot, std::uint64_t chosen,
                          const Highest& highest) {
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

inline double seconds_between(const WatchedProcess& watched) {
    if (!watched.before || !watched.now || watched.before->time_ns >= watched.now->time_ns)
        return 0;
    return static_cast<double>(watched.now->time_ns - watched.before->time_ns) * 1e-9;
}

using profile::Value;

inline std::int64_t change_of(const WatchedSites& sites, const ProfileSite& site) {
    const auto before = sites.before.find(site.id);
    const std::uint64_t bytes = before == sites.before.end() ? 0 : before->second;
    return static_cast<std::int64_t>(site.live_bytes - bytes);
}

// The tables of the single views, in the order of the snapshot.
inline Table processes_table(const TopData& data, Sizes sizes) {
    Table table;
    table.columns = {text_column("NAME", 15),  {"PID", Side::right, 7}, {"POOLS"},
                     size_column("IN USE"),    size_column("CAPACITY"), size_column("PEAK"),
                     size_column("HIGHEST"),   part_column("UTIL"),     count_column("ALLOC/s"),
                     count_column("FAULTS/s"), size_column("RESIDENT"), size_column("DEV USE"),
                     size_column("DEV CAP")};
    for (const WatchedProcess& watched : data.processes) {
        if (!watched.now) continue;
        const Totals totals = add_up(*watched.now);
        const TotalRates rates = add_up(rates_of(watched));
        const std::uint64_t number = watched.process.process;
        table.rows.push_back(
            {text_cell(shown_name(watched.process.name, number)), number_cell(number),
             number_cell(watched.now->pools.size()), size_cell(totals.in_use_bytes, sizes),
             size_cell(totals.capacity_bytes, sizes), size_cell(totals.peak_bytes, sizes),
             size_cell(data.highest.get(process_key(number)), sizes),
             part_cell(totals.in_use_bytes, totals.capacity_bytes), count_cell(rates.allocations),
             count_cell(rates.faults), size_cell(watched.now->resident_bytes, sizes),
             size_cell(totals.device_in_use_bytes, sizes),
             size_cell(totals.device_capacity_bytes, sizes)});
        table.keys.push_back(std::to_string(number));
    }
    return table;
}

/// Shows records of the kind of the view, or all values of the one that is chosen. Budgets are in
/// the order of the tree.
inline Table records_table(const TopData& data, const TopState& state, Sizes sizes) {
    // Without a process, the columns are those of no records.
    static const ProcessSnapshot none{};
    const ProcessSnapshot& now = shown(data) != nullptr ? *shown(data) : none;
    if (state.view == View::others) return mixed_table(now.others, sizes);
    const auto& names = info_of(state.view).groups;
    std::vector<RecordGroup> groups = groups_of(now);
    for (RecordGroup& group : groups) {
        if (std::ranges::find(names, group.name) == names.end()) continue;
        if (state.view == View::threads && state.pool != 0) {
            std::erase_if(group.records, [&](const RecordGroup::Record& thread) {
                return thread.id >> 32 != state.pool;
            });
        }
        const auto found = std::ranges::find(group.records, state.record, &RecordGroup::Record::id);
        if (state.record != 0 && found != group.records.end()) {
            return details_table(group, *found, sizes);
        }
    }
    if (state.record != 0) return {};
    RecordHistory history;
    history.highest = [&](const std::string& key) { return data.highest.get(key); };
    if (data.chosen && data.chosen->now && data.chosen->before) {
        history.before = groups_of(*data.chosen->before);
        history.seconds = difference(*data.chosen->before, now).seconds;
    }
    return record_table(groups, names, sizes, history);
}

/// Shows the pool with this id; 0: the sums over all pools.
inline Table buckets_table(const TopData& data, std::uint64_t pool, Sizes sizes) {
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

/// The key of a row is the id of the site.
inline Table sites_table(const TopData& data, Sizes sizes) {
    Table table;
    table.columns = {text_column("ALLOCATED AT", 40),
                     size_column("LIVE"),
                     {"CHANGE", Side::right, 9},
                     part_column("PART"),
                     count_column("BLOCKS")};
    if (!data.sites) return table;
    const profile::NamedProfile& now = data.sites->now;
    const std::uint64_t total = now.total(Value::live);
    for (const ProfileSite& site : now.profile.sites) {
        table.rows.push_back({line_cell(now, site), size_cell(site.live_bytes, sizes),
                              growth_cell(change_of(*data.sites, site), sizes),
                              part_cell(site.live_bytes, total),
                              count_cell(blocks_of(site, Value::live))});
        table.keys.push_back(std::to_string(site.id));
    }
    return table;
}

/// Returns the call stack of the site with this key, innermost call first; empty if there is none.
inline std::vector<std::string> stack_lines(const TopData& data, const std::string& key) {
    if (!data.sites) return {};
    const profile::NamedProfile& now = data.sites->now;
    const auto site = std::ranges::find_if(
        now.profile.sites, [&](const ProfileSite& one) { return std::to_string(one.id) == key; });
    return site == now.profile.sites.end() ? std::vector<std::string>()
                                           : profile::short_stack_of(now, *site);
}

/// Returns notes about the heap profile of the chosen process.
inline std::vector<std::string> site_notes(const TopData& data) {
    if (!data.sites) return {"The names of the call stacks are being read."};
    return profile::notes_of(data.sites->now.profile);
}

/// Newest event first.
inline Table events_table(const TopData& data, Sizes sizes) {
    Table table;
    table.columns = {text_column("TIME (UTC)", 12), text_column("WHAT", 9),
                     text_column("NAME", 23),       size_column("SIZE"),
                     text_column("LIMIT", 8),       {"THREAD", Side::right, 7}};
    for (auto entry = data.entries.rbegin(); entry != data.entries.rend(); ++entry) {
        const std::string line = to_text(*entry);  // begins with the time of day
        table.rows.push_back({{line.substr(0, line.find(' ')), static_cast<double>(entry->number)},
                              text_cell(to_string(entry->kind)),
                              text_cell(entry->name),
                              size_cell(entry->bytes, sizes),
                              text_cell(to_string(entry->limit)),
                              number_cell(entry->thread)});
        table.keys.push_back(std::to_string(entry->number));
    }
    return table;
}

/// Returns the table of the present view, sorted as the state says; empty if no process is chosen.
inline Table table_of(const TopData& data, const TopState& state) {
    const Sizes sizes = state.plain_bytes ? Sizes::bytes : Sizes::iec;
    // These keep the order of the values, and that of the tree.
    const bool has_order = state.record != 0 || state.view == View::budgets;
    const auto make = [&]() -> Table {
        switch (state.view) {
            case View::processes:
                return processes_table(data, sizes);
            case View::buckets:
                return buckets_table(data, state.pool, sizes);
            case View::sites:
                return sites_table(data, sizes);
            case View::events:
                return events_table(data, sizes);
            default:
                return records_table(data, state, sizes);
        }
    };
    Table table = make();
    if (!has_order) sort_rows(table, state.position().column, state.position().inverted);
    return table;
}

}  // namespace tensorpool::command
