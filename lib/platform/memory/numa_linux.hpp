#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "platform/files/fields_linux.hpp"

namespace tensorpool::platform {

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
