#pragma once

/// @file
/// The result in words and figures.

#include <cstdint>
#include <string>
#include <vector>

#include "contest/measurement.hpp"

namespace tensorpool::photos {

/// One line of the table.
struct Row {
    std::string name;
    Measurement measured;
};

/// `1234567` as `1,234,567`.
std::string with_commas(std::uint64_t number);

/// CPU seconds, page faults and peak memory of each row, and each figure's ratio to the first
/// row's. Ends with a newline.
std::string table(const std::vector<Row>& rows);

/// One sentence, on two lines: what the pool took of what malloc did, and whether that is less.
std::string verdict(const Measurement& pool, const Measurement& malloc);

}  // namespace tensorpool::photos
