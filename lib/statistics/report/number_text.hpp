#pragma once

#include <charconv>
#include <cmath>
#include <string>

namespace tensorpool::statistics {

/// A number for JSON: the fewest digits that tell it, in every locale; whole ones without an
/// exponent. What is no number is 0.
inline std::string number_text(double value) {
    if (!std::isfinite(value)) return "0";
    constexpr double exact = 9007199254740992.0;  // whole numbers up to 2^53 are
    if (std::abs(value) <= exact && value == std::trunc(value)) {
        return std::to_string(static_cast<long long>(value));
    }
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    return error == std::errc() ? std::string(text, end) : "0";
}

}  // namespace tensorpool::statistics
