#pragma once

#include <cstddef>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::platform {

/// Returns `bytes` rounded up to whole pages of the system.
inline std::size_t whole_pages(std::size_t bytes) noexcept {
    return base::align_up(bytes, page_bytes());
}

}  // namespace tensorpool::platform
