#pragma once

#include <optional>
#include <string_view>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

/// The type that NumPy writes as `descr`, such as "<f4" or "|S12"; its name is `descr`. Nothing for
/// what is none that NumPy writes, and for objects. Numbers of the other byte order have no code.
std::optional<ElementType> npy_type(std::string_view descr) noexcept;

}  // namespace tensorpool::files
