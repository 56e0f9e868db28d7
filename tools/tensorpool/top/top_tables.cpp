#include "top/top_tables.hpp"

#include <algorithm>

#include "common/cells.hpp"
#include "common/record_table.hpp"
#include "common/totals.hpp"

namespace tensorpool::command {
namespace {

ProcessRates rates_of(const WatchedProcess& watched) {
    return watched.before && watched.now ? difference(*watched.before, *watched.now)
                                         : ProcessRates{};
}

const ProcessSnapshot* shown(const TopData& data) {
    return data.chosen && data.chosen->now ? &*data.chosen->now : nullptr;
}

}  // namespace

Table processes_table(const TopData& data, Sizes sizes) {
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

Table records_table(const TopData& data, const TopState& state, Sizes sizes) {
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

Table events_table(const TopData& data, Sizes sizes) {
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

Table table_of(const TopData& data, const TopState& state) {
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
