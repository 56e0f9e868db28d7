#pragma once

#include <string_view>

#include "platform/platform.hpp"

namespace tensorpool::platform {

/// Reads the settings in `folder` and returns the value of `folio_sizes`
/// (/sys/kernel/mm/transparent_hugepage; Linux, Documentation/admin-guide/mm/transhuge.rst).
FolioSizes read_folio_sizes(std::string_view folder) noexcept;

}  // namespace tensorpool::platform
