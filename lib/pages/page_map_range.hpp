#pragma once

#include <tensorpool/export.hpp>

namespace tensorpool::pages {

/// Returns whether `p` lies in the page map, whose parts that can only be read were never written.
/// Any thread may call it.
TENSORPOOL_API bool lies_in_page_map(const void* p) noexcept;

}  // namespace tensorpool::pages
