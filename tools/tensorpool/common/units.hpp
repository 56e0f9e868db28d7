#pragma once

/// @file
/// Formats sizes, counts, fractions and times for people, and parses those of the command line.

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "common/printable.hpp"

namespace tensorpool::command {

/// How sizes are printed: with binary units, or as plain numbers of bytes.
enum class Sizes { iec, bytes };

/// Three significant digits, without rounding up to a fourth: 9.994 is "9.99", 9.996 is "10.0".
inline std::string three_digits(double value) {
    if (value < 9.995) return fmt::format("{:.2f}", value);
    if (value < 99.95) return fmt::format("{:.1f}", value);
    return fmt::format("{:.0f}", value);
}

struct Unit {
    std::string_view name;
    double factor;
};
inline constexpr Unit size_units[] = {{"", 1},         {"B", 1},        {"KiB", 0x1p10},
                                      {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
inline constexpr Unit time_units[] = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};

/// Parses a decimal number with one of the units. Returns nothing for other texts.
inline std::optional<double> parse(std::string_view text, std::span<const Unit> units) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    for (const Unit& unit : units) {
        if (unit.name == std::string_view(rest, end)) return number * unit.factor;
    }
    return std::nullopt;
}

/// Parses a text that is a whole number, and nothing else. Returns nothing for other texts.
template <class Number>
std::optional<Number> parse_whole(std::string_view text, int base = 10) noexcept {
    Number number = 0;
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number, base);
    if (error != std::errc() || last != end) return std::nullopt;
    return number;
}

/// Returns "0", "812 B" or "1.50 MiB", or the plain number of bytes.
inline std::string format_size(std::uint64_t bytes, Sizes sizes = Sizes::iec) {
    static constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (sizes == Sizes::bytes || bytes == 0) return fmt::format("{}", bytes);
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    // From 1023.5 on, the value would round to 1024 of this unit.
    for (; value >= 1023.5 && unit + 1 < units.size(); ++unit) value /= 1024;
    return three_digits(value) + ' ' + units[unit];
}

/// Returns a size with its sign, "+" included; 0 has no sign.
inline std::string format_growth(std::int64_t bytes, Sizes sizes = Sizes::iec) {
    const auto size = static_cast<std::uint64_t>(bytes);
    if (bytes == 0) return "0";
    return bytes < 0 ? '-' + format_size(0 - size, sizes) : '+' + format_size(size, sizes);
}

/// Returns a count or a rate: "0", "0.25", "9999", "12.3k", "4.56M".
inline std::string format_count(double count) {
    static constexpr std::array units = {"", "k", "M", "G", "T", "P", "E"};
    if (!(count > 0)) return "0";
    if (count < 0.005) return "<0.01";
    if (count < 9.995 && count != std::floor(count)) return fmt::format("{:.2f}", count);
    if (count < 9999.5) return fmt::format("{:.0f}", count);
    std::size_t unit = 0;
    for (; count >= 999.5 && unit + 1 < units.size(); ++unit) count /= 1000;
    return three_digits(count) + units[unit];
}

/// Returns a fraction as a percentage: "98.7%", "100%".
inline std::string format_part(double part) {
    // 99.97 % must not be shown as 100 %.
    if (part < 1 && part > 0.999) return "99.9%";
    if (part >= 0.9995) return fmt::format("{:.0f}%", part * 100);
    return fmt::format("{:.1f}%", part * 100);
}

/// Returns a time in its largest unit: "12 s", "3 min", "5 h", "2 d".
inline std::string format_time(double seconds) {
    if (seconds < 120) return fmt::format("{:.0f} s", seconds);
    if (seconds < 2 * 3600) return fmt::format("{:.0f} min", seconds / 60);
    if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
    return fmt::format("{:.0f} d", seconds / 86400);
}

/// Returns a time such as "0", "812 ns", "1.23 us", "45.6 ms", "7.89 s" or "12 min".
inline std::string format_ns(std::uint64_t ns) {
    static constexpr std::array units = {"ns", "us", "ms", "s"};
    if (ns == 0) return "0";
    if (ns < 1000) return fmt::format("{} ns", ns);
    if (ns >= 120'000'000'000) return format_time(static_cast<double>(ns) / 1e9);
    auto value = static_cast<double>(ns);
    std::size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
    return three_digits(value) + ' ' + units[unit];
}

/// Returns a whole number such as "1,234,567".
inline std::string with_commas(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t left = text.size(); left > 3;) text.insert(left -= 3, 1, ',');
    return text;
}

/// Returns a number with its noun, such as "1 layer", "151,936 layers" or "2 processes".
inline std::string counted(std::uint64_t number, std::string_view noun) {
    const char* const plural = noun.ends_with('s') ? "es" : "s";
    return fmt::format("{} {}{}", with_commas(number), noun, number == 1 ? "" : plural);
}

/// Returns how far a peak is above a lower bound, such as "0%", "0.0123%" or "12.3%"; below 0.001%
/// in bytes: "64 B".
inline std::string gap_text(std::uint64_t peak_bytes, std::uint64_t lower_bound_bytes) {
    const std::uint64_t above = peak_bytes - lower_bound_bytes;
    if (above == 0) return "0%";
    const double percent =
        static_cast<double>(above) / static_cast<double>(lower_bound_bytes) * 100;
    // Smaller fractions are hard to read as percentages.
    return percent < 0.001 ? format_size(above) : fmt::format("{:.3g}%", percent);
}

/// Parses "4096", "64KiB" or "1.5GiB", the sizes of the environment variables. Returns nothing for
/// invalid sizes and sizes below one byte.
inline std::optional<std::uint64_t> parse_size(std::string_view text) {
    const std::optional<double> bytes = parse(text, size_units);
    if (!bytes || !(*bytes >= 1 && *bytes < 0x1p63)) return std::nullopt;
    return static_cast<std::uint64_t>(*bytes);
}

/// Parses "10s", "500ms", "1.5min", "2h", or a plain number of seconds. Returns nothing for invalid
/// times and times of more than a year.
inline std::optional<std::chrono::nanoseconds> parse_time(std::string_view text) {
    constexpr double max_seconds = 366.0 * 86400;
    const std::optional<double> seconds = parse(text, time_units);
    if (!seconds || !(*seconds > 0 && *seconds < max_seconds)) return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9));
}

/// Validators for CLI11: return why the text is not a size or a time, or "".
inline std::string problem_of_size(const std::string& text) {
    if (parse_size(text)) return "";
    return fmt::format("'{}' is not a size; expected a size such as 512KiB, 64MiB or 2GiB",
                       printable(text));
}

inline std::string problem_of_time(const std::string& text) {
    if (parse_time(text)) return "";
    return fmt::format("'{}' is not a time; expected a time such as 500ms, 10s, 5min or 1h",
                       printable(text));
}

}  // namespace tensorpool::command
