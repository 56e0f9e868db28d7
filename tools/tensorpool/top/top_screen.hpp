#pragma once

/// @file
/// Makes the tables of the views of `top`, and draws the screen.

#include "common/target.hpp"
#include "formats/profile/formats.hpp"
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
        if (state.view == View::processes) return processes_table(data, sizes);
        if (state.view == View::buckets) return buckets_table(data, state.pool, sizes);
        if (state.view == View::sites) return sites_table(data, sizes);
        if (state.view == View::events) return events_table(data, sizes);
        return records_table(data, state, sizes);
    };
    Table table = make();
    if (!has_order) sort_rows(table, state.position().column, state.position().inverted);
    return table;
}

struct ScreenSize {
    std::size_t columns = 80;
    std::size_t rows = 24;
};

enum class Style { plain, title, header, selected, problem, keys };

struct ScreenLine {
    std::string text;
    Style style = Style::plain;
};

using Lines = std::vector<ScreenLine>;

inline constexpr const char* no_process_text =
    "No process with a pool is visible; the first one will be shown here. `tensorpool doctor` "
    "shows possible reasons.";

inline Lines headline_of_all(const TopData& data, Sizes sizes) {
    std::uint64_t in_use = 0;
    std::uint64_t capacity = 0;
    for (const WatchedProcess& watched : data.processes) {
        if (!watched.now) continue;
        const Totals totals = add_up(*watched.now);
        in_use += totals.in_use_bytes;
        capacity += totals.capacity_bytes;
    }
    return {{fmt::format("tensorpool top: {} {} with pools", data.processes.size(),
                         data.processes.size() == 1 ? "process" : "processes"),
             Style::title},
            {fmt::format("in use {}  capacity {}", format_size(in_use, sizes),
                         format_size(capacity, sizes)),
             Style::plain}};
}

inline std::string memory_line(const TopData& data, const Totals& totals, Sizes sizes) {
    const std::uint64_t process = data.chosen->process.process;
    return fmt::format("in use {}  highest {}  capacity {}  limit {}  util {}",
                       format_size(totals.in_use_bytes, sizes),
                       format_size(data.highest.get(process_key(process)), sizes),
                       format_size(totals.capacity_bytes, sizes),
                       totals.limit_bytes == 0 ? "none" : format_size(totals.limit_bytes, sizes),
                       format_part(ratio(totals.in_use_bytes, totals.capacity_bytes)));
}

inline std::string rates_line(const WatchedProcess& watched, const Totals& totals) {
    const TotalRates rates = add_up(rates_of(watched));
    return fmt::format("allocs/s {}  frees/s {}  hits {}  faults/s {}  failed {}  checks {}",
                       format_count(rates.allocations), format_count(rates.deallocations),
                       format_part(rates.hit_ratio), format_count(rates.faults),
                       format_count(static_cast<double>(totals.failures)),
                       format_count(static_cast<double>(totals.checks)));
}

inline std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out) {
    std::string text;
    for (const auto& [list, number] : left_out) {
        if (number == 0) continue;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, printable(list));
    }
    if (text.empty()) return text;
    return "Without a record in the segment, counted together as \"other\": " + text + '.';
}

/// Returns the chosen process and its totals, or in the view of all processes the totals of all.
inline Lines headline(const TopData& data, const TopState& state) {
    const Sizes sizes = state.plain_bytes ? Sizes::bytes : Sizes::iec;
    if (state.view == View::processes) return headline_of_all(data, sizes);
    if (!data.chosen) return {{"tensorpool top: no process", Style::title}};
    const WatchedProcess& watched = *data.chosen;
    const std::string name = shown_name(watched.process.name, watched.process.process);
    Lines lines = {
        {fmt::format("{} ({}){}", name, watched.process.process, watched.ended ? ", ended" : ""),
         Style::title}};
    if (!watched.now) return lines;
    const Totals totals = add_up(*watched.now);
    lines.front().text += ", tensorpool " + printable(watched.now->library_version);
    lines.push_back({memory_line(data, totals, sizes), Style::plain});
    lines.push_back({rates_line(watched, totals), Style::plain});
    return lines;
}

inline std::string awaited_text(const TopData& data) {
    std::vector<ObservedProcess> running;
    for (const WatchedProcess& watched : data.processes) {
        if (watched.now && !watched.ended) running.push_back(watched.process);
    }
    const std::string name = printable(data.awaited);
    if (find_by_name(running, data.awaited).size() < 2) {
        return fmt::format("Waiting for a process named {}.", name);
    }
    return fmt::format("Several processes match the name {}: press Enter on one of them.", name);
}

/// Returns notes about the chosen process: that it has ended, and limits of its statistics.
inline std::vector<std::string> notes_of(const TopData& data) {
    std::vector<std::string> notes;
    const WatchedProcess& watched = *data.chosen;
    if (watched.ended) {
        notes.push_back(
            fmt::format("The process {} has ended{} {}", watched.process.process,
                        watched.now ? ": these are its last statistics." : ".",
                        data.awaited.empty() ? "Press o for the others." : awaited_text(data)));
    }
    if (!watched.now) return notes;
    const std::string left_out = left_out_text(watched.now->left_out);
    if (!left_out.empty()) notes.push_back(left_out);
    if (!watched.now->consistent) {
        notes.push_back("Pools or threads change constantly: values may be inconsistent.");
    }
    return notes;
}

inline std::string unreadable_text(const WatchedProcess& watched) {
    return fmt::format(
        "{} ({}) {}", watched.process.process,
        shown_name(watched.process.name, watched.process.process),
        watched.ended ? "has ended." : "cannot be read: " + printable(watched.process.problem));
}

/// Returns the name of the record whose values are shown.
inline std::string record_text(const TopData& data, const TopState& state) {
    const ViewInfo& view = info_of(state.view);
    if (!data.chosen || !data.chosen->now) return "";
    for (const RecordGroup& group : groups_of(*data.chosen->now)) {
        if (std::ranges::find(view.groups, group.name) == view.groups.end()) continue;
        const auto found = std::ranges::find(group.records, state.record, &RecordGroup::Record::id);
        if (found == group.records.end()) continue;
        return fmt::format("{}{}; {} for the others", printable(found->name),
                           found->text.empty() ? "" : " of " + printable(found->text), view.key);
    }
    return fmt::format("a record that was destroyed; {} for the others", view.key);
}

/// Returns the name of the pool, or "all pools".
inline std::string pool_text(const TopData& data, std::uint64_t pool) {
    if (pool == 0 || !data.chosen || !data.chosen->now) return "all pools";
    const auto& pools = data.chosen->now->pools;
    const auto found = std::ranges::find_if(pools, [&](const auto& p) { return p.id == pool; });
    return found == pools.end() ? "a pool that was destroyed" : "pool " + printable(found->name);
}

/// Returns whether the process has records of kinds that this program does not know.
inline bool has_others(const TopData& data) {
    return data.chosen && data.chosen->now && !data.chosen->now->others.empty();
}

/// The views with their keys; the present view is in capitals. That of other kinds is left out if
/// there are none.
inline std::string tabs(const TopData& data, const TopState& state) {
    std::string text;
    for (std::size_t view = 0; view < view_count; ++view) {
        const bool is_of_others = static_cast<View>(view) == View::others;
        if (is_of_others && state.view != View::others && !has_others(data)) continue;
        std::string name = views[view].tab;
        if (static_cast<std::size_t>(state.view) == view) {
            std::erase_if(name, [](char c) { return c == '[' || c == ']'; });
            std::ranges::transform(name, name.begin(),
                                   [](char c) { return static_cast<char>(std::toupper(c)); });
        }
        text += (view == 0 ? "" : " ") + name;
    }
    return text;
}

inline void add_wrapped(Lines& lines, std::string_view text, std::size_t columns, Style style) {
    for (std::string& line : wrap(text, columns)) lines.push_back({std::move(line), style});
}

/// Why values are incomplete or not shown.
inline Lines notes(const TopData& data, const TopState& state, std::size_t columns) {
    Lines lines;
    if (state.view == View::processes) {
        for (const WatchedProcess& watched : data.processes) {
            if (watched.now && !watched.ended) continue;
            add_wrapped(lines, unreadable_text(watched), columns, Style::problem);
        }
        if (!data.awaited.empty() && !data.chosen) {
            add_wrapped(lines, awaited_text(data), columns, Style::problem);
        } else if (data.processes.empty()) {
            add_wrapped(lines, no_process_text, columns, Style::problem);
        }
    } else if (!data.chosen) {
        add_wrapped(lines, "No process is chosen: press o, then Enter on one of them.", columns,
                    Style::problem);
    } else {
        std::vector<std::string> texts = notes_of(data);
        if (state.view == View::sites)
            std::ranges::copy(site_notes(data), std::back_inserter(texts));
        for (const std::string& note : texts) add_wrapped(lines, note, columns, Style::problem);
    }
    return lines;
}

inline std::string empty_text(const TopData& data, View view) {
    const ProcessSnapshot& now = *data.chosen->now;
    if (view == View::pools && !(now.arenas.empty() && now.scratches.empty())) {
        return "This process has no pool now, only arenas: press a.";
    }
    if (view == View::sites && data.sites) {
        return "No allocation of this process has been sampled yet.";
    }
    return info_of(view).empty;
}

/// Returns the part of the table around the cursor, in at most `room` lines.
inline Lines table_lines(const Table& table, const TopState& state, std::size_t columns,
                         std::size_t room) {
    std::vector<std::string> all = lay_out(table, columns);
    Lines lines = {{all.front(), Style::header}};
    if (table.rows.empty() || room < 2) return lines;
    const std::size_t cursor = std::min(state.position().cursor, table.rows.size() - 1);
    const std::size_t shown = room - 1;
    const std::size_t first = cursor < shown ? 0 : cursor - shown + 1;
    for (std::size_t row = first; row < std::min(first + shown, table.rows.size()); ++row) {
        lines.push_back({all[row + 1], row == cursor ? Style::selected : Style::plain});
    }
    return lines;
}

/// Returns the call stack of the selected site, in at most `room` lines.
inline Lines stack_of_selected(const TopData& data, const TopState& state, const Table& table,
                               std::size_t room) {
    if (state.view != View::sites || table.rows.empty() || room < 2) return {};
    const std::size_t row = std::min(state.position().cursor, table.rows.size() - 1);
    const std::vector<std::string> calls = stack_lines(data, table.keys[row]);
    Lines lines = {{"Its call stack, innermost call first:", Style::title}};
    const std::size_t shown = calls.size() < room ? calls.size() : room - 2;
    for (std::size_t i = 0; i < shown; ++i) lines.push_back({"  " + calls[i], Style::plain});
    if (shown < calls.size()) {
        lines.push_back({fmt::format("  {} more calls", calls.size() - shown), Style::plain});
    }
    return lines;
}

inline std::string sorting_text(const TopData& data, const TopState& state, const Table& table) {
    const Position& position = state.position();
    if (state.record != 0) return record_text(data, state);
    std::string text = state.view == View::budgets
                           ? "each below its parent"
                           : fmt::format("by {}{}", table.columns[position.column].title,
                                         position.inverted ? " (inverted)" : "");
    const bool of_pool = state.view == View::buckets || state.view == View::threads;
    if (of_pool) text += ", " + pool_text(data, state.pool);
    if (!table.rows.empty()) {
        text += fmt::format(", row {} of {}", std::min(position.cursor, table.rows.size() - 1) + 1,
                            table.rows.size());
    }
    return text;
}

inline Lines body(const TopData& data, const TopState& state, ScreenSize size) {
    Table table = table_of(data, state);
    Lines lines = headline(data, state);
    add_wrapped(lines, tabs(data, state), size.columns, Style::plain);
    Lines below = notes(data, state, size.columns);
    const bool has_snapshot = state.view == View::processes || (data.chosen && data.chosen->now);
    if (has_snapshot) {
        lines.push_back({sorting_text(data, state, table), Style::plain});
        const std::size_t taken = lines.size() + std::min<std::size_t>(below.size(), 6) + 1;
        const std::size_t room = size.rows > taken ? size.rows - taken : 2;
        const std::size_t stack_room = room - std::min(table.rows.size() + 1, room / 2);
        const Lines stack = stack_of_selected(data, state, table, stack_room);
        std::ranges::move(table_lines(table, state, size.columns, room - stack.size()),
                          std::back_inserter(lines));
        std::ranges::copy(stack, std::back_inserter(lines));
        if (table.rows.empty() && !empty_text(data, state.view).empty()) {
            below.insert(below.begin(), {empty_text(data, state.view), Style::plain});
        }
    }
    for (ScreenLine& line : below) lines.push_back(std::move(line));
    return lines;
}

/// Returns the list of the keys and of the columns.
inline Lines help_screen() {
    static constexpr std::array text = {
        "o p b c s t     processes, pools, buckets, call sites, scopes, threads",
        "a l d g n k e   arenas, plans, devices, budgets, resting, other kinds, events",
        "Tab             the next of these views; Shift-Tab the previous one",
        "Up Down Home End PageUp PageDown    move the cursor",
        "Enter           open this process; for a pool: its buckets; for a record",
        "                such as a device allocator: all its values",
        "Left Right      another pool, in the views buckets and threads",
        "< >             sort by another column;  i  reverse the order",
        "r               reset HIGHEST, the highest value that this top has seen,",
        "                and count CHANGE from now on",
        "u               sizes as numbers of bytes, or as KiB, MiB, GiB",
        "Escape o        back to all processes",
        "q Ctrl-C        quit",
        "",
        "IN USE    memory held by callers     CAPACITY  committed memory",
        "PEAK      the process's own          RESTING   compressed or in files",
        "UTIL      in use of the capacity     HITS      served by the thread's own cache",
        "WASTE     allocated, not requested   PARKED    free in caches",
        "FAIL      failed requests            CHANGE    of live bytes, since start or r",
        "BOUND     minimum possible peak      POOL PLAN the peaks of pool and plan",
        "SHARE     of the hard or soft limit  ASKED     how often holders were asked"};
    Lines lines = {{"Keys of tensorpool top", Style::title}, {"", Style::plain}};
    for (const char* const line : text) lines.push_back({line, Style::plain});
    return lines;
}

/// Returns at most as many lines as there are rows, none wider than the columns.
inline std::vector<ScreenLine> draw(const TopData& data, const TopState& state, ScreenSize size) {
    Lines lines = state.help ? help_screen() : body(data, state, size);
    if (size.rows == 0) return {};
    lines.resize(size.rows - 1);
    lines.push_back({state.help ? "any key: back   q: quit"
                                : "q quit  h help  Tab view  Enter open  < > sort  i invert"
                                  "  r reset highest",
                     Style::keys});
    for (ScreenLine& line : lines) {
        if (columns_of(line.text) > size.columns) line.text = fit(line.text, size.columns);
    }
    return lines;
}

}  // namespace tensorpool::command
