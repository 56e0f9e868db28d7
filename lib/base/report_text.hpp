#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

/// Functions that reports share.
namespace tensorpool::base {

/// Returns the text with U+FFFD in place of invalid UTF-8, such as a name cut within a character.
std::string valid_utf8(const char* text);
/// Returns the text as a JSON string (RFC 8259). Invalid UTF-8 becomes U+FFFD.
std::string quoted(const char* text);

/// Formats a number for JSON with the fewest digits that identify it, independent of the locale.
/// Whole numbers have no exponent. Infinities and NaN become 0.
std::string number_text(double value);

/// Returns the percentage; 0 if `whole` is 0.
double percent(std::uint64_t part, std::uint64_t whole) noexcept;

template <class... Arguments>
void add_line(std::string& out, const char* format, Arguments... arguments) {
    char line[256];
    std::snprintf(line, sizeof line, format, arguments...);
    out += line;
    out += '\n';
}

}  // namespace tensorpool::base
