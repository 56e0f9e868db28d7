#pragma once

#include <string_view>

#include <tensorpool/data_type.hpp>

namespace tensorpool::tensors {

/// A type of safetensors. Its name is valid for ever.
struct SafetensorsType {
    std::string_view name;
    DataType type;
};

/// Returns the type of this name, or nullptr if the format does not have it.
const SafetensorsType* safetensors_type(std::string_view name) noexcept;

}  // namespace tensorpool::tensors
