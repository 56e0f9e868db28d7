#include "common/html.hpp"

#include <charconv>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace tensorpool::command {
namespace {

unsigned byte_at(std::string_view hex, std::size_t index) {
    unsigned byte = 0;
    const char* const pair = hex.data() + 2 * index;
    std::from_chars(pair, pair + 2, byte, 16);
    return byte;
}

std::string_view escaped(const char& character) {
    switch (character) {
        case '&':
            return "&amp;";
        case '<':
            return "&lt;";
        case '>':
            return "&gt;";
        case '"':
            return "&quot;";
        case '\'':
            return "&#39;";
        default:
            break;
    }
    const auto code = static_cast<unsigned char>(character);
    return code < 0x20 || code == 0x7f ? "\xEF\xBF\xBD" : std::string_view(&character, 1);
}

}  // namespace

std::string json_line(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string valid_utf8(std::string_view text) {
    return nlohmann::json::parse(json_line(text)).get<std::string>();
}

std::string escape_html(std::string_view text) {
    std::string safe;
    for (const char& character : valid_utf8(text)) safe += escaped(character);
    return safe;
}

std::string base64_of_hex(std::string_view hex) {
    static constexpr char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    const std::size_t bytes = hex.size() / 2;
    for (std::size_t i = 0; i < bytes; i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            three = three << 8 | (i + k < bytes ? byte_at(hex, i + k) : 0);
        }
        for (std::size_t k = 0; k < 4; ++k) {
            const bool is_padding = i + k > bytes;
            text += is_padding ? '=' : digits[three >> (18 - 6 * k) & 63];
        }
    }
    return text;
}

}  // namespace tensorpool::command
