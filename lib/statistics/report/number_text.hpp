#pragma once

#include <charconv>
#include <cmath>
#include <string>

namespace tensorpool::statistics {

/// Formats a number for JSON with the fewest digits that identify it, independent of the locale.
/// Whole numbers have no exponent. Infinities and NaN become 0.
inline std::string number_text(double value) {
    if (!std::isfinite(value)) return "0";
    constexpr double exact = 9007199254740992.0;  // all whole numbers up to 2^53 are exact
    if (std::abs(value) <= exact && value == std::trunc(value)) {
        return std::to_string(static_cast<long long>(value));
    }
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    return error == std::errc() ? std::string(text, end) : "0";
}

}  // namespace tensorpool::statistics
