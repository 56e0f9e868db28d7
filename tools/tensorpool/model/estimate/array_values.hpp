#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tensorpool/model_file.hpp>

namespace tensorpool::command::model {

/// The first `most` of an array of whole numbers or of truths; nothing for other types. What no
/// std::int64_t holds is its largest.
std::optional<std::vector<std::int64_t>> whole_numbers(const MetadataArray& array,
                                                       std::size_t most);

}  // namespace tensorpool::command::model
