#pragma once

#include <string_view>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

/// nullptr for a name that the format does not know.
const ElementType* safetensors_type(std::string_view name) noexcept;

}  // namespace tensorpool::files
