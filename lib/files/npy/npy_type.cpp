#include "files/npy/npy_type.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace tensorpool::files {
namespace {

// NumPy stores the size of an element in an int.
constexpr std::uint32_t max_bytes = std::numeric_limits<std::int32_t>::max();

/// Bytes of a character in NumPy's text type (kind U).
constexpr std::uint32_t character_bytes = 4;

bool is_one_of(std::uint32_t bytes, std::initializer_list<std::uint32_t> sizes) noexcept {
    return std::ranges::find(sizes, bytes) != sizes.end();
}

/// 12 and 24 bytes are the sizes of long double on i386, single and as a complex number.
bool is_size_of(char kind, std::uint32_t bytes) noexcept {
    switch (kind) {
        case 'b':
            return bytes == 1;
        case 'i':
        case 'u':
            return is_one_of(bytes, {1, 2, 4, 8});
        case 'f':
            return is_one_of(bytes, {2, 4, 8, 12, 16});
        case 'c':
            return is_one_of(bytes, {8, 16, 24, 32});
        case 'm':
        case 'M':
            return bytes == 8;
        case 'S':
        case 'V':
            return bytes >= 1 && bytes <= max_bytes;
        case 'U':
            return bytes >= 1 && bytes <= max_bytes / character_bytes;
        default:
            return false;
    }
}

std::int8_t code_of(char kind) noexcept {
    switch (kind) {
        case 'i':
            return 0;
        case 'u':
            return 1;
        case 'f':
            return 2;
        case 'c':
            return 5;
        case 'b':
            return 6;
        default:
            return -1;
    }
}

bool is_native(char order) noexcept {
    return order == '|' || (order == '<') == (std::endian::native == std::endian::little);
}

/// Returns whether `text` may follow the size: the unit of a time, as in "<M8[ns]".
bool is_unit(char kind, std::string_view text) noexcept {
    if (text.empty()) return true;
    return (kind == 'm' || kind == 'M') && text.size() > 2 && text.front() == '[' &&
           text.find(']') == text.size() - 1;
}

}  // namespace

std::optional<ElementType> npy_type(std::string_view descr) noexcept {
    if (descr.size() < 3) return std::nullopt;
    const char order = descr[0];
    const char kind = descr[1];
    if (order != '<' && order != '>' && order != '|') return std::nullopt;
    std::uint32_t bytes = 0;
    const char* const end = descr.data() + descr.size();
    const auto [rest, error] = std::from_chars(descr.data() + 2, end, bytes);
    if (error != std::errc() || !is_size_of(kind, bytes)) return std::nullopt;
    if (!is_unit(kind, {rest, static_cast<std::size_t>(end - rest)})) return std::nullopt;
    if (kind == 'U') bytes *= character_bytes;
    return ElementType{.name = descr,
                       .block_elements = 1,
                       .block_bytes = bytes,
                       .dlpack_code = is_native(order) ? code_of(kind) : std::int8_t{-1}};
}

}  // namespace tensorpool::files
