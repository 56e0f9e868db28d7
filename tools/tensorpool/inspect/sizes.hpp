#pragma once

#include <cstdint>
#include <vector>

#include "inspect/history.hpp"

namespace tensorpool::command::inspect {

/// All requests of one size.
struct SizeRow {
    std::uint64_t bytes = 0;  ///< of each
    std::uint64_t requests = 0;
    std::uint64_t total() const noexcept { return bytes * requests; }
};

/// The `most` sizes that came to most bytes, and those that were asked for most often, the largest
/// first. What was made before the recording is not among them.
std::vector<SizeRow> largest_by_bytes(const History& history, std::size_t most);
std::vector<SizeRow> largest_by_requests(const History& history, std::size_t most);

}  // namespace tensorpool::command::inspect
