#include "common/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tensorpool::command {
namespace {

/// Three significant digits, without rounding up to a fourth: 9.994 is "9.99", 9.996 is "10.0".
std::string three_digits(double value) {
    if (value < 9.995) return fmt::format("{:.2f}", value);
    if (value < 99.95) return fmt::format("{:.1f}", value);
    return fmt::format("{:.0f}", value);
}

}  // namespace

std::string format_size(std::uint64_t bytes, Sizes sizes) {
    static constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (sizes == Sizes::bytes || bytes == 0) return fmt::format("{}", bytes);
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    // From 1023.5 on, the value would round to 1024 of this unit.
    for (; value >= 1023.5 && unit + 1 < units.size(); ++unit) value /= 1024;
    return three_digits(value) + ' ' + units[unit];
}

std::string format_growth(std::int64_t bytes, Sizes sizes) {
    const auto size = static_cast<std::uint64_t>(bytes);
    if (bytes == 0) return "0";
    return bytes < 0 ? '-' + format_size(0 - size, sizes) : '+' + format_size(size, sizes);
}

std::string format_count(double count) {
    static constexpr std::array units = {"", "k", "M", "G", "T", "P", "E"};
    if (!(count > 0)) return "0";
    if (count < 0.005) return "<0.01";
    if (count < 9.995 && count != std::floor(count)) return fmt::format("{:.2f}", count);
    if (count < 9999.5) return fmt::format("{:.0f}", count);
    std::size_t unit = 0;
    for (; count >= 999.5 && unit + 1 < units.size(); ++unit) count /= 1000;
    return three_digits(count) + units[unit];
}

std::string format_part(double part) {
    // 99.97 % must not be shown as 100 %.
    if (part < 1 && part > 0.999) return "99.9%";
    if (part >= 0.9995) return fmt::format("{:.0f}%", part * 100);
    return fmt::format("{:.1f}%", part * 100);
}

std::string format_time(double seconds) {
    if (seconds < 120) return fmt::format("{:.0f} s", seconds);
    if (seconds < 2 * 3600) return fmt::format("{:.0f} min", seconds / 60);
    if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
    return fmt::format("{:.0f} d", seconds / 86400);
}

}  // namespace tensorpool::command
