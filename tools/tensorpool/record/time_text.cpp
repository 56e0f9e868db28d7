#include "record/time_text.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/printable.hpp"

namespace tensorpool::command::record {
namespace {

std::optional<double> seconds_of(std::string_view unit) {
    if (unit == "ms") return 1e-3;
    if (unit == "s" || unit.empty()) return 1;
    if (unit == "min") return 60;
    if (unit == "h") return 3600;
    return std::nullopt;
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_time(std::string_view text) {
    constexpr double max_seconds = 366.0 * 86400;
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [unit, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    const auto factor = seconds_of(std::string_view(unit, static_cast<std::size_t>(end - unit)));
    if (error != std::errc() || !factor) return std::nullopt;
    const double seconds = number * *factor;
    if (!(seconds > 0 && seconds < max_seconds)) return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

std::string problem_of_time(const std::string& text) {
    if (parse_time(text)) return "";
    return fmt::format("'{}' is not a time; expected a time such as 500ms, 10s, 5min or 1h",
                       printable(text));
}

}  // namespace tensorpool::command::record
