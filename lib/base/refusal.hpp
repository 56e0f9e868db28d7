#pragma once

#include <cstddef>

namespace tensorpool::base {

/// Why a request could not be met: the limit in words, such as `max_capacity`, and its size in
/// bytes.
struct Refusal {
    const char* limit = "";
    std::size_t limit_bytes = 0;
};

}  // namespace tensorpool::base
