#pragma once

/// @file
/// Draws the screen of `top` from its data.

#include "top/top_data.hpp"
#include "top/top_state.hpp"

namespace tensorpool::command {

struct ScreenSize {
    std::size_t columns = 80;
    std::size_t rows = 24;
};

enum class Style { plain, title, header, selected, problem, keys };

struct ScreenLine {
    std::string text;
    Style style = Style::plain;
};

/// Returns at most as many lines as there are rows, none wider than the columns.
std::vector<ScreenLine> draw(const TopData& data, const TopState& state, ScreenSize size);

}  // namespace tensorpool::command
