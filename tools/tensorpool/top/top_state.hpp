#pragma once

/// @file
/// The state of the user interface of `top`, and the effects of keys.

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/table.hpp"

namespace tensorpool::command {

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

/// What there is to know of a view.
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

/// The cursor and the sort order of one view.
struct Position {
    std::size_t cursor = 0;  ///< the row
    std::size_t column = 0;  ///< the table is sorted by it
    bool inverted = false;
};

/// What the caller has to do after a key.
enum class Action { nothing, quit, reset_highest, choose_process, update };

struct TopState {
    TopState();

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

/// Applies a key. `table` is the sorted table of the view; `pools` are the ids of the process's
/// pools.
Action press(TopState& state, KeyPress key, const Table& table,
             const std::vector<std::uint64_t>& pools);

}  // namespace tensorpool::command
