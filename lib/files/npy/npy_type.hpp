#pragma once

#include <optional>
#include <string_view>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

/// Returns the type that NumPy writes as `descr`, such as "<f4" or "|S12"; its name is `descr`.
/// Returns nothing for Python objects and for types that NumPy does not write. Numbers of the other
/// byte order have no DLPack code.
std::optional<ElementType> npy_type(std::string_view descr) noexcept;

}  // namespace tensorpool::files
