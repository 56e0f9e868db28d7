#pragma once

/// @file
/// Where a person is in `top`, and what keys do.

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
    scopes,
    threads,
    arenas,
    planned,
    devices,
    events
};
inline constexpr std::size_t view_count = 9;

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

/// In one view.
struct Place {
    std::size_t cursor = 0;  ///< the row
    std::size_t column = 0;  ///< that it is sorted by
    bool inverted = false;
};

/// What has to be done outside.
enum class Wish { nothing, quit, reset_highest, choose_process, look };

struct TopState {
    TopState();

    View view = View::processes;
    bool help = false;
    bool plain_bytes = false;
    std::uint64_t process = 0;  ///< the one chosen by Wish::choose_process
    std::uint64_t pool = 0;     ///< whose buckets and threads are shown; 0: of all
    std::uint64_t device = 0;  ///< whose figures stand beside PyTorch's words; 0: the list is shown
    std::array<Place, view_count> places;

    Place& place() { return places[static_cast<unsigned>(view)]; }
    const Place& place() const { return places[static_cast<unsigned>(view)]; }
};

/// What a key does. `table` is what the view shows, sorted; `pools` the numbers of the process's.
Wish press(TopState& state, KeyPress key, const Table& table,
           const std::vector<std::uint64_t>& pools);

}  // namespace tensorpool::command
