#pragma once

/// @file
/// The data that `top` shows, the state of its user interface, and the effects of keys.

#include <iterator>

#include <tensorpool/statistics_reader.hpp>

#include "common/record_table.hpp"
#include "common/totals.hpp"
#include "formats/profile/named_profile.hpp"

namespace tensorpool::command {

/// The highest values that this reader has seen. They are kept here, because readers never write to
/// the segment.
class Highest {
public:
    void record(const std::string& key, std::uint64_t value) {
        Seen& seen = seen_[key];
        seen.last = value;
        seen.highest = std::max(seen.highest, value);
    }
    /// Makes the last value of each key its highest.
    void reset() {
        for (auto& [key, seen] : seen_) seen.highest = seen.last;
    }
    /// Returns the highest value since the last reset.
    std::uint64_t get(const std::string& key) const {
        const auto found = seen_.find(key);
        return found == seen_.end() ? 0 : found->second.highest;
    }

private:
    struct Seen {
        std::uint64_t last = 0;
        std::uint64_t highest = 0;
    };
    std::map<std::string, Seen> seen_;
};

/// The last two snapshots of a process.
struct WatchedProcess {
    ObservedProcess process;
    std::optional<ProcessSnapshot> before;
    std::optional<ProcessSnapshot> now;  ///< nothing if it cannot be read
    bool ended = false;                  ///< `now` holds its last statistics
};

/// The heap profile of a process, and what its sites held before.
struct WatchedSites {
    profile::NamedProfile now;
    /// The live bytes of each site, by id, in the first profile or when `r` was pressed.
    std::unordered_map<std::uint64_t, std::uint64_t> before;
};

struct TopData {
    std::vector<WatchedProcess> processes;  ///< the running processes
    std::optional<WatchedProcess> chosen;
    std::optional<WatchedSites> sites;   ///< of the chosen process; nothing until they have names
    std::vector<TimelineEntry> entries;  ///< of the chosen process, oldest first
    std::string awaited;                 ///< --name while waiting for another process; otherwise ""
    Highest highest;
};

inline std::string bucket_key(std::uint64_t pool, unsigned bucket) {
    return fmt::format("bucket {} {}", pool, bucket);
}

inline void record_buckets(const PoolStatistics& pool, Highest& highest) {
    for (unsigned bucket = 0; bucket < pool.buckets.size(); ++bucket) {
        highest.record(bucket_key(pool.id, bucket), pool.buckets[bucket].in_use_bytes);
    }
    highest.record(bucket_key(pool.id, detail::bucket_count), pool.large.in_use_bytes);
}

/// Records what a column shows the highest value of.
inline void record_highest(const std::vector<RecordGroup>& groups, const RecordGroup& group,
                           Highest& highest) {
    const RecordGrid grid = to_grid(groups, group);
    for (std::size_t i = 0; i < grid.columns.size(); ++i) {
        if (grid.columns[i].show != RecordColumn::Show::highest) continue;
        for (const RecordRow& row : grid.rows) {
            highest.record(record_key(grid.of, group.records[row.record].id), row.cells[i].number);
        }
    }
}

inline void count_from_now(WatchedSites& sites) {
    sites.before.clear();
    for (const ProfileSite& site : sites.now.profile.sites) {
        sites.before[site.id] = site.live_bytes;
    }
}

// Keys of `highest`; those of records are made by `record_key`.
inline std::string process_key(std::uint64_t process) {
    return fmt::format("process {}", process);
}

/// Returns the records of all kinds, including pools and threads.
inline std::vector<RecordGroup> groups_of(const ProcessSnapshot& snapshot) {
    std::vector<RecordGroup> groups = pool_groups(snapshot);
    std::ranges::move(record_groups(snapshot), std::back_inserter(groups));
    return groups;
}

/// Adds a new snapshot: the last becomes the previous one, and the highest values are updated.
inline void add_snapshot(WatchedProcess& watched, ProcessSnapshot snapshot, Highest& highest) {
    highest.record(process_key(snapshot.process), add_up(snapshot).in_use_bytes);
    for (const PoolStatistics& pool : snapshot.pools) record_buckets(pool, highest);
    const std::vector<RecordGroup> groups = groups_of(snapshot);
    for (const RecordGroup& group : groups) record_highest(groups, group, highest);
    watched.before = std::exchange(watched.now, std::move(snapshot));
}

/// Makes `profile` the present one. The first one is also the one that changes are counted from.
inline void add_profile(TopData& data, profile::NamedProfile profile) {
    if (data.sites) {
        data.sites->now = std::move(profile);
    } else {
        data.sites = {std::move(profile), {}};
        count_from_now(*data.sites);
    }
}

/// Counts changes from now on, and makes the last values the highest ones.
inline void reset_highest(TopData& data) {
    data.highest.reset();
    if (data.sites) count_from_now(*data.sites);
}

enum class View : unsigned {
    processes,
    pools,
    buckets,
    sites,
    scopes,
    threads,
    arenas,
    planned,
    devices,
    budgets,
    stashes,
    others,
    events
};
inline constexpr std::size_t view_count = 13;

struct ViewInfo {
    char key;
    const char* tab;                              ///< the name, with the key in brackets
    std::size_t column;                           ///< by which the table is sorted at first
    const char* empty = "";                       ///< said of a table without rows
    std::array<std::string_view, 2> groups = {};  ///< the lists of records that it shows
};
/// By their numbers. At first, the order is that of the memory in use; that of scopes and threads
/// is their activity, that of planned arenas the plan's peak, and that of stashes what rests.
inline constexpr std::array<ViewInfo, view_count> views = {
    {{'o', "pr[o]cs", 3},
     {'p', "[p]ools", 1, "This process has no pool now.", {"pools"}},
     {'b', "[b]uckets", 0},
     {'c', "[c]all-sites", 1},
     {'s', "[s]copes", 1, "No StatisticsScope has begun in this process.", {"scopes"}},
     {'t', "[t]hreads", 3, "No thread has used a pool.", {"threads"}},
     {'a', "[a]renas", 2, "This process has no arena and no scratch now.", {"arenas", "scratches"}},
     {'l', "p[l]ans", 4, "This process has no PlannedArena now.", {"planned"}},
     {'d', "[d]evices", 2, "This process has no allocator of device memory now.", {"devices"}},
     {'g', "bud[g]ets", 0, "This process has no Budget now.", {"budgets"}},
     {'n',
      "resti[n]g",
      4,
      "Nothing of this process rests now: no Stash, no StashedMap, no frozen block.",
      {"stashes"}},
     {'k', "[k]inds", 0, "This process has no records of other kinds."},
     {'e', "[e]vents", 0, "No events yet."}}};
inline const ViewInfo& info_of(View view) {
    return views[static_cast<unsigned>(view)];
}

enum class Action { nothing, quit, reset_highest, choose_process, update };

struct Position {
    std::size_t cursor = 0;  ///< the row
    std::size_t column = 0;  ///< the table is sorted by it
    bool inverted = false;
};

struct TopState {
    TopState() {
        for (std::size_t i = 0; i < view_count; ++i) positions[i].column = views[i].column;
        positions[static_cast<unsigned>(View::buckets)].inverted = true;
    }

    View view = View::processes;
    bool help = false;
    bool plain_bytes = false;
    std::uint64_t process = 0;  ///< set with Action::choose_process
    std::uint64_t pool = 0;     ///< shown in the views buckets and threads; 0: all
    std::uint64_t record = 0;   ///< shown with all its values; 0: the list is shown
    std::array<Position, view_count> positions;

    Position& position() { return positions[static_cast<unsigned>(view)]; }
    const Position& position() const { return positions[static_cast<unsigned>(view)]; }
};

inline Action change_view(TopState& state, View view) {
    state.view = view;
    state.record = 0;
    return Action::update;
}

inline Action enter(TopState& state, const Table& table) {
    const std::size_t row = state.position().cursor;
    if (row >= table.keys.size()) return Action::nothing;
    const std::uint64_t number = std::strtoull(table.keys[row].c_str(), nullptr, 10);
    if (state.view == View::processes) {
        state.process = number;
        state.pool = 0;
        state.record = 0;
        state.view = View::pools;
        return Action::choose_process;
    }
    if (state.view == View::pools) {
        state.pool = number;
        return change_view(state, View::buckets);
    }
    if (info_of(state.view).groups[0].empty() || state.record != 0) return Action::nothing;
    state.record = number;
    return Action::update;
}

enum class Key {
    character,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    first,
    last,
    enter,
    tab,
    back_tab,
    escape,
};

struct KeyPress {
    Key key = Key::character;
    char character = 0;
};

inline constexpr std::size_t page_rows = 10;

inline Action move(Position& position, const Table& table, std::ptrdiff_t rows) {
    const auto last = static_cast<std::ptrdiff_t>(table.rows.size()) - 1;
    const std::ptrdiff_t wanted = static_cast<std::ptrdiff_t>(position.cursor) + rows;
    position.cursor = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(wanted, 0, std::max<std::ptrdiff_t>(last, 0)));
    return Action::nothing;
}

inline Action turn_view(TopState& state, int step) {
    constexpr int count = static_cast<int>(view_count);
    const int next = (static_cast<int>(state.view) + step + count) % count;
    return change_view(state, static_cast<View>(next));
}

inline Action turn_pool(TopState& state, const std::vector<std::uint64_t>& pools, int step) {
    std::vector<std::uint64_t> choices = {0};
    choices.insert(choices.end(), pools.begin(), pools.end());
    const auto found = std::ranges::find(choices, state.pool);
    const auto at = found == choices.end() ? 0 : found - choices.begin();
    const auto count = static_cast<std::ptrdiff_t>(choices.size());
    state.pool = choices[static_cast<std::size_t>((at + step + count) % count)];
    return Action::nothing;
}

inline Action sort_by(TopState& state, const Table& table, int step) {
    const auto count = static_cast<int>(std::max<std::size_t>(table.columns.size(), 1));
    Position& position = state.position();
    position.column =
        static_cast<std::size_t>((static_cast<int>(position.column) + step + count) % count);
    return Action::nothing;
}

inline Action press_character(TopState& state, char character, const Table& table) {
    switch (character) {
        case 'q':
            return Action::quit;
        case 'r':
            return Action::reset_highest;
        case 'u':
            state.plain_bytes = !state.plain_bytes;
            return Action::nothing;
        case 'i':
            state.position().inverted = !state.position().inverted;
            return Action::nothing;
        case '<':
            return sort_by(state, table, -1);
        case '>':
            return sort_by(state, table, 1);
        case 'h':
        case '?':
            state.help = true;
            return Action::nothing;
        default: {
            const auto found = std::ranges::find(views, character, &ViewInfo::key);
            return found == views.end()
                       ? Action::nothing
                       : change_view(state, static_cast<View>(found - views.begin()));
        }
    }
}

/// Applies a key. `table` is the sorted table of the view; `pools` are the ids of the process's
/// pools.
inline Action press(TopState& state, KeyPress key, const Table& table,
                    const std::vector<std::uint64_t>& pools) {
    if (state.help) {
        state.help = false;
        return key.character == 'q' ? Action::quit : Action::nothing;
    }
    Position& position = state.position();
    position.cursor = std::min(position.cursor, std::max<std::size_t>(table.rows.size(), 1) - 1);
    const auto rows = static_cast<std::ptrdiff_t>(table.rows.size());
    switch (key.key) {
        case Key::character:
            return press_character(state, key.character, table);
        case Key::up:
            return move(position, table, -1);
        case Key::down:
            return move(position, table, 1);
        case Key::page_up:
            return move(position, table, -static_cast<std::ptrdiff_t>(page_rows));
        case Key::page_down:
            return move(position, table, page_rows);
        case Key::first:
            return move(position, table, -rows);
        case Key::last:
            return move(position, table, rows);
        case Key::left:
            return turn_pool(state, pools, -1);
        case Key::right:
            return turn_pool(state, pools, 1);
        case Key::enter:
            return enter(state, table);
        case Key::tab:
            return turn_view(state, 1);
        case Key::back_tab:
            return turn_view(state, -1);
        case Key::escape:
            if (state.record != 0) return change_view(state, state.view);
            return change_view(state, View::processes);
    }
    return Action::nothing;
}

}  // namespace tensorpool::command
