#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

namespace tensorpool::platform {

/// Removes the text up to and including the next `separator` from the front of `text`. Returns the
/// text before the separator.
inline std::string_view take_field(std::string_view& text, char separator) noexcept {
    const std::size_t length = std::min(text.find(separator), text.size());
    const std::string_view field = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    return field;
}

/// Returns the number at the beginning of `text`, after any spaces. Returns nullopt if there is no
/// number (such as the "max" of control groups) or if it is too large for a size.
inline std::optional<std::size_t> parse_number(std::string_view text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::size_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{}) return std::nullopt;
    return number;
}

/// The kernel supports at most 1024 nodes (CONFIG_NODES_SHIFT is at most 10).
inline constexpr unsigned max_numa_nodes = 1024;

/// Returns the number of nodes in a list such as "0-1,4": one more than the highest node, which is
/// listed last. Nodes in between may be missing. Returns 1 if the text is not a list.
inline unsigned count_numa_nodes(std::string_view list) noexcept {
    const std::size_t last = list.find_last_of("-,");
    if (last != std::string_view::npos) list.remove_prefix(last + 1);
    const std::size_t highest = parse_number(list).value_or(0);
    return static_cast<unsigned>(std::min<std::size_t>(highest, max_numa_nodes - 1)) + 1;
}

}  // namespace tensorpool::platform
