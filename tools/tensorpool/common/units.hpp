#pragma once

/// @file
/// Formats sizes, counts, fractions and times for people.

#include <cstdint>
#include <string>

namespace tensorpool::command {

/// How sizes are printed: with binary units, or as plain numbers of bytes.
enum class Sizes { iec, bytes };

/// Returns "0", "812 B" or "1.50 MiB", or the plain number of bytes.
std::string format_size(std::uint64_t bytes, Sizes sizes = Sizes::iec);
/// Returns a size with its sign, "+" included; 0 has no sign.
std::string format_growth(std::int64_t bytes, Sizes sizes = Sizes::iec);
/// Returns a count or a rate: "0", "0.25", "9999", "12.3k", "4.56M".
std::string format_count(double count);
/// Returns a fraction as a percentage: "98.7%", "100%".
std::string format_part(double part);
/// Returns a time in its largest unit: "12 s", "3 min", "5 h", "2 d".
std::string format_time(double seconds);

}  // namespace tensorpool::command
