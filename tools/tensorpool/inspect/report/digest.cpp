#include "inspect/report/digest.hpp"

#include <charconv>
#include <cstdint>

namespace tensorpool::command::inspect {
namespace {

unsigned byte_at(std::string_view hex, std::size_t index) {
    unsigned byte = 0;
    const char* const pair = hex.data() + 2 * index;
    std::from_chars(pair, pair + 2, byte, 16);
    return byte;
}

}  // namespace

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

}  // namespace tensorpool::command::inspect
