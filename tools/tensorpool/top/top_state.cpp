#include "top/top_state.hpp"

#include <algorithm>
#include <cstdlib>

namespace tensorpool::command {
namespace {

constexpr std::size_t page_rows = 10;

void move(Position& position, const Table& table, std::ptrdiff_t rows) {
    const auto last = static_cast<std::ptrdiff_t>(table.rows.size()) - 1;
    const std::ptrdiff_t wanted = static_cast<std::ptrdiff_t>(position.cursor) + rows;
    position.cursor = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(wanted, 0, std::max<std::ptrdiff_t>(last, 0)));
}

Action change_view(TopState& state, View view) {
    state.view = view;
    state.record = 0;
    return Action::update;
}

/// Moves to the next or previous view.
Action turn_view(TopState& state, int step) {
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
    Position& position = state.position();
    position.column =
        static_cast<std::size_t>((static_cast<int>(position.column) + step + count) % count);
}

Action enter(TopState& state, const Table& table) {
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

Action press_character(TopState& state, char character, const Table& table) {
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
            sort_by(state, table, -1);
            return Action::nothing;
        case '>':
            sort_by(state, table, 1);
            return Action::nothing;
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

}  // namespace

TopState::TopState() {
    for (std::size_t view = 0; view < view_count; ++view) {
        positions[view].column = views[view].column;
    }
    positions[static_cast<unsigned>(View::buckets)].inverted = true;
}

Action press(TopState& state, KeyPress key, const Table& table,
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
            move(position, table, -1);
            break;
        case Key::down:
            move(position, table, 1);
            break;
        case Key::page_up:
            move(position, table, -static_cast<std::ptrdiff_t>(page_rows));
            break;
        case Key::page_down:
            move(position, table, page_rows);
            break;
        case Key::first:
            move(position, table, -rows);
            break;
        case Key::last:
            move(position, table, rows);
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
            if (state.record != 0) return change_view(state, state.view);
            return change_view(state, View::processes);
    }
    return Action::nothing;
}

}  // namespace tensorpool::command
