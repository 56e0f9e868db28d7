#pragma once

#include <cstddef>

namespace tensorpool::detail {

/// Why a request could not be met: the limit in words, such as `max_capacity`, and its size in
/// bytes. In `detail`, for members of public classes are named by it.
struct Refusal {
    const char* limit = "";
    std::size_t limit_bytes = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool::base {

using detail::Refusal;

}  // namespace tensorpool::base
