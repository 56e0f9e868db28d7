#pragma once

/// @file
/// Formats the results as a table and a sentence.

#include <cstdint>
#include <string>
#include <vector>

#include "contest/measurement.hpp"

namespace tensorpool::photos {

/// A line of the table.
struct Row {
    std::string name;
    Measurement measured;
};

/// Formats `1234567` as `1,234,567`.
std::string with_commas(std::uint64_t number);

/// Formats CPU seconds, page faults and peak memory of each row, each with its ratio to the first
/// row. Ends with a newline.
std::string table(const std::vector<Row>& rows);

/// Returns a sentence on two lines: the resource usage of the pool relative to malloc, and whether
/// it saves CPU time.
std::string verdict(const Measurement& pool, const Measurement& malloc);

}  // namespace tensorpool::photos
