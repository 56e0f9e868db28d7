#pragma once

#include <cstddef>

namespace tensorpool::detail {

/// Why a request could not be met: the limit in words, such as `max_capacity`, and its size in
/// bytes.
struct ArenaRefusal {
    const char* limit = "";
    std::size_t bytes = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool::arena {

using Refusal = detail::ArenaRefusal;

}  // namespace tensorpool::arena
