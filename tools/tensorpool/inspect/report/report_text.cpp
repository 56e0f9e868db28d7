#include "inspect/report/report_text.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "common/units.hpp"

namespace tensorpool::command::inspect {

std::string format_ns(std::uint64_t ns) {
    static constexpr std::array units = {"ns", "us", "ms", "s"};
    if (ns == 0) return "0";
    if (ns < 1000) return fmt::format("{} ns", ns);
    if (ns >= 120'000'000'000) return format_time(static_cast<double>(ns) / 1e9);
    double value = static_cast<double>(ns);
    std::size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, digits, units[unit]);
}

std::string valid_utf8(std::string_view text) {
    using nlohmann::json;
    const std::string quoted = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    return json::parse(quoted).get<std::string>();
}

std::string escape_html(std::string_view text) {
    std::string escaped;
    for (const char character : valid_utf8(text)) {
        switch (character) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            case '\'':
                escaped += "&#39;";
                break;
            default:
                const auto code = static_cast<unsigned char>(character);
                if (code < 0x20 || code == 0x7f) {
                    escaped += "\xEF\xBF\xBD";
                } else {
                    escaped += character;
                }
        }
    }
    return escaped;
}

}  // namespace tensorpool::command::inspect
