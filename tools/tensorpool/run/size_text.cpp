#include "run/size_text.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/printable.hpp"

namespace tensorpool::command::run {
namespace {

std::optional<double> factor_of(std::string_view unit) {
    if (unit.empty() || unit == "B") return 1;
    double factor = 1;
    for (const std::string_view known : {"KiB", "MiB", "GiB", "TiB"}) {
        factor *= 1024;
        if (unit == known) return factor;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
    constexpr double end = 0x1p63;
    double number = 0;
    const char* const last = text.data() + text.size();
    const auto [unit, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
    const auto factor = factor_of(std::string_view(unit, static_cast<std::size_t>(last - unit)));
    if (error != std::errc() || !factor) return std::nullopt;
    const double bytes = number * *factor;
    if (!(bytes >= 1 && bytes < end)) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
}

std::string problem_of_size(const std::string& text) {
    if (parse_size(text)) return "";
    return fmt::format("'{}' is not a size; expected a size such as 512KiB, 64MiB or 2GiB",
                       printable(text));
}

}  // namespace tensorpool::command::run
