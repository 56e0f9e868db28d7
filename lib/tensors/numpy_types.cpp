#include <tensorpool/data_type.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

namespace tensorpool {
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

DataCode code_of(char kind) noexcept {
    switch (kind) {
        case 'i':
            return DataCode::signed_integer;
        case 'u':
            return DataCode::unsigned_integer;
        case 'f':
            return DataCode::floating;
        case 'c':
            return DataCode::complex;
        case 'b':
            return DataCode::boolean;
        default:
            return DataCode::opaque;
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

/// Returns the type of a text of so many characters, or of so many bytes.
DataType text_type(char kind, std::uint32_t count) noexcept {
    const std::uint32_t bytes = kind == 'U' ? character_bytes : 1;
    return {
        .code = DataCode::opaque, .bits = static_cast<std::uint16_t>(8 * bytes), .lanes = count};
}

}  // namespace

std::optional<DataType> find_numpy_type(std::string_view descr) noexcept {
    if (descr.size() < 3) return std::nullopt;
    const char order = descr[0];
    const char kind = descr[1];
    if (order != '<' && order != '>' && order != '|') return std::nullopt;
    std::uint32_t size = 0;
    const char* const end = descr.data() + descr.size();
    const auto [rest, error] = std::from_chars(descr.data() + 2, end, size);
    if (error != std::errc() || !is_size_of(kind, size)) return std::nullopt;
    if (!is_unit(kind, {rest, static_cast<std::size_t>(end - rest)})) return std::nullopt;
    if (kind == 'S' || kind == 'U' || kind == 'V') return text_type(kind, size);
    return DataType{.code = is_native(order) ? code_of(kind) : DataCode::opaque,
                    .bits = static_cast<std::uint16_t>(8 * size)};
}

}  // namespace tensorpool
