#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "platform/files/fields_linux.hpp"

namespace tensorpool::platform {

/// The kernel knows 1024 nodes at most (CONFIG_NODES_SHIFT is 10 at most).
inline constexpr unsigned max_numa_nodes = 1024;

/// Number of nodes in a list such as "0-1,4": one more than the highest, which stands last. Nodes
/// in between may be missing. 1 where it is no list.
inline unsigned count_numa_nodes(std::string_view list) noexcept {
    const std::size_t last = list.find_last_of("-,");
    if (last != std::string_view::npos) list.remove_prefix(last + 1);
    const std::size_t highest = parse_number(list).value_or(0);
    return static_cast<unsigned>(std::min<std::size_t>(highest, max_numa_nodes - 1)) + 1;
}

}  // namespace tensorpool::platform
