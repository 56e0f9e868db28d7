#include "top/top_tables.hpp"

#include <algorithm>

#include "common/budget_table.hpp"
#include "common/cells.hpp"
#include "common/planned_table.hpp"
#include "common/stash_table.hpp"
#include "common/totals.hpp"

namespace tensorpool::command {
namespace {

ProcessRates rates_of(const WatchedProcess& watched) {
    return watched.before && watched.now ? difference(*watched.before, *watched.now)
                                         : ProcessRates{};
}

PoolRates rates_of(const ProcessRates& rates, std::uint64_t pool) {
    const auto found =
        std::ranges::find_if(rates.pools, [&](const PoolRates& p) { return p.pool == pool; });
    return found == rates.pools.end() ? PoolRates{} : *found;
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

Table pools_table(const TopData& data, Sizes sizes) {
    Table table;
    table.columns = {text_column("NAME", 12),
                     size_column("IN USE"),
                     size_column("CAPACITY"),
                     size_column("PEAK"),
                     size_column("HIGHEST"),
                     part_column("UTIL"),
                     part_column("HITS"),
                     count_column("ALLOC/s"),
                     {"FAIL"},
                     size_column("LIMIT"),
                     count_column("FREE/s"),
                     size_column("PARKED"),
                     size_column("CACHED"),
                     {"THREADS"}};
    if (shown(data) == nullptr) return table;
    const ProcessRates rates = rates_of(*data.chosen);
    for (const PoolStatistics& pool : shown(data)->pools) {
        const PoolRates now = rates_of(rates, pool.id);
        table.rows.push_back(
            {text_cell(pool.name), size_cell(pool.in_use_bytes, sizes),
             size_cell(pool.capacity_bytes, sizes), size_cell(pool.peak_in_use_bytes, sizes),
             size_cell(data.highest.get(pool_key(pool.id)), sizes),
             part_cell(pool.in_use_bytes, pool.capacity_bytes),
             part_cell(pool.cache_hits, pool.allocations), count_cell(now.allocations),
             count_cell(pool.failures), limit_cell(pool.limit_bytes, sizes),
             count_cell(now.deallocations), size_cell(pool.parked_bytes, sizes),
             size_cell(pool.depot_bytes + pool.cached_bytes, sizes), number_cell(pool.threads)});
        table.keys.push_back(std::to_string(pool.id));
    }
    return table;
}

Table scopes_table(const TopData& data, Sizes sizes) {
    Table table;
    table.columns = {text_column("SCOPE", 16),  size_column("PEAK"),     count_column("CALLS"),
                     count_column("OPEN"),      size_column("GROWTH"),   count_column("ALLOCS"),
                     size_column("BYTES/CALL"), count_column("MISORDER")};
    if (shown(data) == nullptr) return table;
    for (const ScopeStatistics& scope : shown(data)->scopes) {
        const std::uint64_t calls = std::max<std::uint64_t>(scope.calls, 1);
        table.rows.push_back(
            {text_cell(scope.name), size_cell(scope.peak_bytes, sizes), count_cell(scope.calls),
             count_cell(scope.open), growth_cell(scope.growth_bytes(), sizes),
             count_cell(scope.allocations), size_cell(scope.allocated_bytes / calls, sizes),
             count_cell(scope.out_of_order)});
        table.keys.emplace_back(scope.name);
    }
    return table;
}

Table arenas_table(const TopData& data, Sizes sizes) {
    static constexpr const char* kinds[] = {"growing", "buffer", "measuring", "scratch"};
    Table table;
    table.columns = {text_column("NAME", 12),   text_column("KIND", 9),
                     size_column("IN USE"),     size_column("CAPACITY"),
                     size_column("PEAK"),       size_column("HIGHEST"),
                     size_column("LIMIT"),      {"REFUSED"},
                     count_column("ALLOCS"),    count_column("GROWTHS"),
                     {"THREAD", Side::right, 7}};
    if (shown(data) == nullptr) return table;
    for (const auto* const kind : {&shown(data)->arenas, &shown(data)->scratches}) {
        for (const ArenaStatistics& arena : *kind) {
            const auto number = static_cast<unsigned>(arena.kind);
            table.rows.push_back(
                {text_cell(arena.name), text_cell(number < 4 ? kinds[number] : "?"),
                 size_cell(arena.used_bytes, sizes), size_cell(arena.capacity_bytes, sizes),
                 size_cell(arena.peak_used_bytes, sizes),
                 size_cell(data.highest.get(arena_key(arena.id)), sizes),
                 limit_cell(arena.limit_bytes, sizes), count_cell(arena.refusals),
                 count_cell(arena.allocations), count_cell(arena.growths),
                 number_cell(arena.thread)});
            table.keys.push_back(std::to_string(arena.id));
        }
    }
    return table;
}

Table planned_table(const TopData& data, Sizes sizes) {
    return shown(data) != nullptr ? planned_table(shown(data)->planned, sizes)
                                  : planned_table(std::vector<PlannedArenaStatistics>(), sizes);
}

Table budgets_table(const TopData& data, Sizes sizes) {
    return budget_table(
        shown(data) != nullptr ? shown(data)->budgets : std::vector<BudgetStatistics>(), sizes);
}

Table stashes_table(const TopData& data, Sizes sizes) {
    return stash_table(shown(data) != nullptr ? *shown(data) : ProcessSnapshot(), sizes);
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
    const auto make = [&]() -> Table {
        switch (state.view) {
            case View::processes:
                return processes_table(data, sizes);
            case View::pools:
                return pools_table(data, sizes);
            case View::buckets:
                return buckets_table(data, state.pool, sizes);
            case View::sites:
                return sites_table(data, sizes);
            case View::scopes:
                return scopes_table(data, sizes);
            case View::threads:
                return threads_table(data, state.pool, sizes);
            case View::arenas:
                return arenas_table(data, sizes);
            case View::planned:
                return planned_table(data, sizes);
            case View::devices:
                return state.device == 0 ? devices_table(data, sizes)
                                         : device_table(data, state.device, sizes);
            case View::budgets:
                return budgets_table(data, sizes);
            case View::stashes:
                return stashes_table(data, sizes);
            case View::events:
                return events_table(data, sizes);
        }
        return {};
    };
    Table table = make();
    // These keep the order of the metrics, and of the tree.
    const bool has_order = state.view == View::devices && state.device != 0;
    if (has_order || state.view == View::budgets) return table;
    sort_rows(table, state.position().column, state.position().inverted);
    return table;
}

}  // namespace tensorpool::command
