#pragma once

#include <string_view>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

/// Returns the type of this name, or nullptr if the format does not have it.
const ElementType* safetensors_type(std::string_view name) noexcept;

}  // namespace tensorpool::files
