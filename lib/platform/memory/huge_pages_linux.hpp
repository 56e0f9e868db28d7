#pragma once

#include <string_view>

#include "platform/platform.hpp"

namespace tensorpool::platform {

/// What `folio_sizes` returns where the settings lie in `folder`
/// (/sys/kernel/mm/transparent_hugepage; Linux, Documentation/admin-guide/mm/transhuge.rst).
FolioSizes read_folio_sizes(std::string_view folder) noexcept;

}  // namespace tensorpool::platform
