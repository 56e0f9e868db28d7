#pragma once

/// @file
/// The state of the user interface of `top`, and the effects of keys.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

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
    std::uint64_t device = 0;   ///< shown with PyTorch's names; 0: the list is shown
    std::array<Position, view_count> positions;

    Position& position() { return positions[static_cast<unsigned>(view)]; }
    const Position& position() const { return positions[static_cast<unsigned>(view)]; }
};

/// Applies a key. `table` is the sorted table of the view; `pools` are the ids of the process's
/// pools.
Action press(TopState& state, KeyPress key, const Table& table,
             const std::vector<std::uint64_t>& pools);

}  // namespace tensorpool::command
