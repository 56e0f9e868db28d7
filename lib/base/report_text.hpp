#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

/// Functions that reports share.
namespace tensorpool::base {

/// Returns the length in bytes of the UTF-8 character at `at` (RFC 3629); 0 if it is invalid.
inline std::size_t utf8_bytes(const char* at) noexcept {
    const auto byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
    const auto follows = [&](std::size_t i, unsigned char min = 0x80, unsigned char max = 0xBF) {
        return byte(i) >= min && byte(i) <= max;
    };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    if (first < 0xE0) return follows(1) ? 2 : 0;
    if (first < 0xF0) {
        const bool second = follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
        return second && follows(2) ? 3 : 0;
    }
    const bool second = follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && follows(2) && follows(3) ? 4 : 0;
}

/// Returns the text with U+FFFD in place of invalid UTF-8, such as a name cut within a character.
inline std::string valid_utf8(const char* text) {
    std::string out;
    for (const char* at = text; *at != '\0';) {
        const std::size_t bytes = utf8_bytes(at);
        if (bytes == 0) {
            out += "\xEF\xBF\xBD";
        } else {
            out.append(at, bytes);
        }
        at += std::max<std::size_t>(bytes, 1);
    }
    return out;
}
/// Returns the text as a JSON string (RFC 8259). Invalid UTF-8 becomes U+FFFD.
inline std::string quoted(const char* text) {
    std::string out = "\"";
    for (const char letter : valid_utf8(text)) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            out += escaped;
        } else {
            if (letter == '"' || letter == '\\') out += '\\';
            out += letter;
        }
    }
    return out + '"';
}

/// Formats `[item,item]`, with the items that `json_of` returns.
template <class Items, class JsonOf>
std::string json_list(const Items& items, JsonOf json_of) {
    std::string out = "[";
    for (const auto& item : items) {
        if (out.size() > 1) out += ',';
        out += json_of(item);
    }
    return out + ']';
}

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

/// Returns the percentage; 0 if `whole` is 0.
inline double percent(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

template <class... Arguments>
void add_line(std::string& out, const char* format, Arguments... arguments) {
    char line[256];
    std::snprintf(line, sizeof line, format, arguments...);
    out += line;
    out += '\n';
}

}  // namespace tensorpool::base
