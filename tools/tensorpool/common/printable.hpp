#pragma once

/// @file
/// Makes texts from other processes safe for a terminal, and measures their width there.

#include <wchar.h>

#include <clocale>
#include <cwchar>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command {

enum class Side { left, right };

struct Glyph {
    std::size_t bytes;
    int columns;  // below 1: not printable
};

inline Glyph first_glyph(std::string_view text) {
    wchar_t character = 0;
    std::mbstate_t state{};
    const std::size_t bytes = std::mbrtowc(&character, text.data(), text.size(), &state);
    if (bytes == 0 || bytes > text.size()) return {1, 0};  // a null, or invalid
    return {bytes, wcwidth(character)};
}

/// Sets the character set from the environment. Without it, `printable` shows only ASCII
/// characters.
inline void use_locale() {
    std::setlocale(LC_CTYPE, "");
}

/// Returns `text` with a `?` for each byte that is not valid in the character set, each character
/// that a terminal would interpret (control characters, escapes), and each character without a
/// width of its own (such as marks that change the direction of writing).
inline std::string printable(std::string_view text) {
    std::string shown;
    while (!text.empty()) {
        const Glyph glyph = first_glyph(text);
        shown += glyph.columns < 1 ? std::string_view("?") : text.substr(0, glyph.bytes);
        text.remove_prefix(glyph.bytes);
    }
    return shown;
}

/// The number of columns that a printable text takes on a terminal.
inline std::size_t columns_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const Glyph glyph = first_glyph(text);
        columns += glyph.columns < 1 ? 0 : static_cast<std::size_t>(glyph.columns);
        text.remove_prefix(glyph.bytes);
    }
    return columns;
}

/// Aligns a printable text to that side of `columns` columns: padded with spaces, or cut at its
/// end.
inline std::string fit(std::string_view text, std::size_t columns, Side side = Side::left) {
    std::string cut;
    std::size_t taken = 0;
    while (!text.empty()) {
        const Glyph glyph = first_glyph(text);
        const std::size_t more = glyph.columns < 1 ? 0 : static_cast<std::size_t>(glyph.columns);
        if (taken + more > columns) break;
        cut += text.substr(0, glyph.bytes);
        taken += more;
        text.remove_prefix(glyph.bytes);
    }
    cut.insert(side == Side::left ? cut.size() : 0, columns - taken, ' ');
    return cut;
}

/// Breaks a text into lines of at most `columns` columns. A single longer word makes a longer line.
inline std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
    std::vector<std::string> lines = {""};
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
        if (!lines.back().empty() && lines.back().size() + 1 + word.size() > columns) {
            lines.emplace_back();
        }
        lines.back() += (lines.back().empty() ? "" : " ") + word;
    }
    return lines;
}

}  // namespace tensorpool::command
