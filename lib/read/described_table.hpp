#pragma once

#include <memory>
#include <string_view>

#include "statistics/records/record_table.hpp"

namespace tensorpool::read {

/// Returns a copy of the table of a kind that a segment carries. It contains no index and no offset
/// that leads outside, whatever the bytes are. Returns nullptr if they describe no records of this
/// size. Throws std::bad_alloc.
std::shared_ptr<const statistics::RecordTable> read_table(std::string_view bytes,
                                                          std::size_t record_bytes);

}  // namespace tensorpool::read
