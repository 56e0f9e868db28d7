#include "top/top_state.hpp"

#include <algorithm>
#include <cstdlib>

namespace tensorpool::command {
namespace {

constexpr std::size_t page_rows = 10;

void move(Place& place, const Table& table, std::ptrdiff_t rows) {
    const auto last = static_cast<std::ptrdiff_t>(table.rows.size()) - 1;
    const std::ptrdiff_t wanted = static_cast<std::ptrdiff_t>(place.cursor) + rows;
    place.cursor = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(wanted, 0, std::max<std::ptrdiff_t>(last, 0)));
}

Wish change_view(TopState& state, View view) {
    state.view = view;
    state.device = 0;
    return Wish::look;
}

/// The views of a process in turn; of all processes where none is chosen.
Wish turn_view(TopState& state, int step) {
    constexpr int count = static_cast<int>(view_count);
    const int next = (static_cast<int>(state.view) + step + count) % count;
    return change_view(state, static_cast<View>(next));
}

void turn_pool(TopState& state, const std::vector<std::uint64_t>& pools, int step) {
    std::vector<std::uint64_t> choices = {0};
    choices.insert(choices.end(), pools.begin(), pools.end());
    const auto found = std::ranges::find(choices, state.pool);
    const auto at = found == choices.end() ? 0 : found - choices.begin();
    const auto count = static_cast<std::ptrdiff_t>(choices.size());
    state.pool = choices[static_cast<std::size_t>((at + step + count) % count)];
}

void sort_by(TopState& state, const Table& table, int step) {
    const auto count = static_cast<int>(std::max<std::size_t>(table.columns.size(), 1));
    Place& place = state.place();
    place.column =
        static_cast<std::size_t>((static_cast<int>(place.column) + step + count) % count);
}

Wish enter(TopState& state, const Table& table) {
    const std::size_t row = state.place().cursor;
    if (row >= table.keys.size()) return Wish::nothing;
    const std::uint64_t number = std::strtoull(table.keys[row].c_str(), nullptr, 10);
    if (state.view == View::processes) {
        state.process = number;
        state.pool = 0;
        state.device = 0;
        state.view = View::pools;
        return Wish::choose_process;
    }
    if (state.view == View::devices && state.device == 0) {
        state.device = number;
        return Wish::look;
    }
    if (state.view != View::pools) return Wish::nothing;
    state.pool = number;
    return change_view(state, View::buckets);
}

Wish press_character(TopState& state, char character, const Table& table) {
    switch (character) {
        case 'q':
            return Wish::quit;
        case 'r':
            return Wish::reset_highest;
        case 'u':
            state.plain_bytes = !state.plain_bytes;
            return Wish::nothing;
        case 'i':
            state.place().inverted = !state.place().inverted;
            return Wish::nothing;
        case '<':
            sort_by(state, table, -1);
            return Wish::nothing;
        case '>':
            sort_by(state, table, 1);
            return Wish::nothing;
        case 'h':
        case '?':
            state.help = true;
            return Wish::nothing;
        case 'o':
            return change_view(state, View::processes);
        case 'p':
            return change_view(state, View::pools);
        case 'b':
            return change_view(state, View::buckets);
        case 's':
            return change_view(state, View::scopes);
        case 't':
            return change_view(state, View::threads);
        case 'a':
            return change_view(state, View::arenas);
        case 'l':
            return change_view(state, View::planned);
        case 'd':
            return change_view(state, View::devices);
        case 'e':
            return change_view(state, View::events);
        default:
            return Wish::nothing;
    }
}

}  // namespace

TopState::TopState() {
    const auto sort = [this](View of, std::size_t column, bool inverted = false) {
        places[static_cast<unsigned>(of)] = {0, column, inverted};
    };
    // By what is in use, and of scopes and threads by what they do.
    sort(View::processes, 3);
    sort(View::pools, 1);
    sort(View::buckets, 0, true);
    sort(View::scopes, 1);
    sort(View::threads, 3);
    sort(View::arenas, 2);
    sort(View::planned, 4);  // the plan's peak
    sort(View::devices, 2);
    sort(View::events, 0);
}

Wish press(TopState& state, KeyPress key, const Table& table,
           const std::vector<std::uint64_t>& pools) {
    if (state.help) {
        state.help = false;
        return key.character == 'q' ? Wish::quit : Wish::nothing;
    }
    Place& place = state.place();
    place.cursor = std::min(place.cursor, std::max<std::size_t>(table.rows.size(), 1) - 1);
    const auto rows = static_cast<std::ptrdiff_t>(table.rows.size());
    switch (key.key) {
        case Key::character:
            return press_character(state, key.character, table);
        case Key::up:
            move(place, table, -1);
            break;
        case Key::down:
            move(place, table, 1);
            break;
        case Key::page_up:
            move(place, table, -static_cast<std::ptrdiff_t>(page_rows));
            break;
        case Key::page_down:
            move(place, table, page_rows);
            break;
        case Key::first:
            move(place, table, -rows);
            break;
        case Key::last:
            move(place, table, rows);
            break;
        case Key::left:
            turn_pool(state, pools, -1);
            break;
        case Key::right:
            turn_pool(state, pools, 1);
            break;
        case Key::enter:
            return enter(state, table);
        case Key::tab:
            return turn_view(state, 1);
        case Key::back_tab:
            return turn_view(state, -1);
        case Key::escape:
            if (state.device != 0) return change_view(state, View::devices);
            return change_view(state, View::processes);
    }
    return Wish::nothing;
}

}  // namespace tensorpool::command
