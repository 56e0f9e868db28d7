#pragma once

/// @file
/// Figures as people read them.

#include <cstdint>
#include <string>

namespace tensorpool::command {

/// How sizes are written.
enum class Sizes { iec, bytes };

/// "0", "812 B", "1.50 MiB"; or the plain number of bytes.
std::string format_size(std::uint64_t bytes, Sizes sizes = Sizes::iec);
/// The same with its sign, "+" included; 0 has none.
std::string format_growth(std::int64_t bytes, Sizes sizes = Sizes::iec);
/// "0", "0.25", "9999", "12.3k", "4.56M": counts, and how often a second.
std::string format_count(double count);
/// A part of 1 as "98.7%", "100%".
std::string format_part(double part);
/// "12 s", "3 min", "5 h", "2 d".
std::string format_time(double seconds);

}  // namespace tensorpool::command
