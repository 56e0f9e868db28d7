#pragma once

/// @file
/// Formats sizes, counts, fractions and times for people, and parses those of the command line.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
/// Returns a time such as "0", "812 ns", "1.23 us", "45.6 ms", "7.89 s" or "12 min".
std::string format_ns(std::uint64_t ns);
/// Returns a whole number such as "1,234,567".
std::string with_commas(std::uint64_t number);
/// Returns a number with its noun, such as "1 layer", "151,936 layers" or "2 processes".
std::string counted(std::uint64_t number, std::string_view noun);
/// Returns how far a peak is above a lower bound, such as "0%", "0.0123%" or "12.3%"; below 0.001%
/// in bytes: "64 B".
std::string gap_text(std::uint64_t peak_bytes, std::uint64_t lower_bound_bytes);

/// Parses "4096", "64KiB" or "1.5GiB", the sizes of the environment variables. Returns nothing for
/// invalid sizes and sizes below one byte.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// Parses "10s", "500ms", "1.5min", "2h", or a plain number of seconds. Returns nothing for invalid
/// times and times of more than a year.
std::optional<std::chrono::nanoseconds> parse_time(std::string_view text);
/// Validators for CLI11: return why the text is not a size or a time, or "".
std::string problem_of_size(const std::string& text);
std::string problem_of_time(const std::string& text);

}  // namespace tensorpool::command
