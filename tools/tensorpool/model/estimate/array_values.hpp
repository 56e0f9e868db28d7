#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tensorpool/model_file.hpp>

namespace tensorpool::command::model {

/// Returns the first `max` values of an array of whole numbers or Booleans; nullopt for other
/// types. Values above the range of std::int64_t become its maximum.
std::optional<std::vector<std::int64_t>> whole_numbers(const MetadataArray& array, std::size_t max);

}  // namespace tensorpool::command::model
