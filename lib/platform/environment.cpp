#include "platform/environment.hpp"

#include <algorithm>

namespace tensorpool::platform {
namespace {

// Returns the number of bytes in a unit; nullopt if the unit is unknown. An empty unit means bytes.
std::optional<double> scale_of(std::string_view unit) {
    static constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (unit.empty()) return 1;
    for (double power = 1; const std::string_view name : units) {
        if (unit == name) return power;
        power *= 1024;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::size_t> parse_bytes(std::string_view text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::optional<double> number = parse_number<double>(text.substr(0, digits));
    const std::optional<double> scale = scale_of(text.substr(digits));
    if (!number || !scale || *number * *scale >= 0x1p63) return std::nullopt;
    return static_cast<std::size_t>(*number * *scale);
}

std::string text_of(std::size_t bytes) {
    if (bytes == 0) return "none";
    return bytes == SIZE_MAX ? "no limit" : base::BytesText(bytes).c_str();
}

void read_bytes(const char* variable, std::size_t& option) {
    read(variable, option, "a size such as 512MiB or 2GiB", text_of(option), parse_bytes);
}

void read_bytes_above_0(const char* variable, std::size_t& option) {
    read(variable, option, "a size above 0 such as 512MiB or 2GiB", text_of(option),
         [](std::string_view text) {
             const std::optional<std::size_t> bytes = parse_bytes(text);
             return bytes != 0U ? bytes : std::nullopt;
         });
}

void read_number(const char* variable, double& option, double max, const char* expected) {
    read(variable, option, expected, std::to_string(option), [max](std::string_view text) {
        const std::optional<double> number = parse_number<double>(text);
        return number && *number >= 0 && *number <= max ? number : std::nullopt;
    });
}

}  // namespace tensorpool::platform
