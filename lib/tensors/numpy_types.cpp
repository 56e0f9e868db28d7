#include <tensorpool/data_type.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>

namespace tensorpool {
namespace {

// NumPy stores the size of an element in an int.
constexpr std::uint32_t max_bytes = std::numeric_limits<std::int32_t>::max();

/// Bytes of a character in NumPy's text type (kind U).
constexpr std::uint32_t character_bytes = 4;

/// A kind of numbers or times.
struct Kind {
    char letter;
    DataCode code;
    std::array<std::uint8_t, 5> sizes;  // in bytes; the others are 0
};

/// 12 and 24 bytes are the sizes of long double on i386, single and as a complex number.
constexpr Kind kinds[] = {{'b', DataCode::boolean, {1}},
                          {'i', DataCode::signed_integer, {1, 2, 4, 8}},
                          {'u', DataCode::unsigned_integer, {1, 2, 4, 8}},
                          {'f', DataCode::floating, {2, 4, 8, 12, 16}},
                          {'c', DataCode::complex, {8, 16, 24, 32}},
                          {'m', DataCode::opaque, {8}},
                          {'M', DataCode::opaque, {8}}};

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
std::optional<DataType> text_type(char kind, std::uint32_t count) noexcept {
    const std::uint32_t bytes = kind == 'U' ? character_bytes : 1;
    if (count < 1 || count > max_bytes / bytes) return std::nullopt;
    return DataType{
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
    if (error != std::errc() || !is_unit(kind, {rest, static_cast<std::size_t>(end - rest)}))
        return std::nullopt;
    if (kind == 'S' || kind == 'U' || kind == 'V') return text_type(kind, size);
    const auto* const found = std::ranges::find(kinds, kind, &Kind::letter);
    if (found == std::end(kinds) || size == 0 ||
        std::ranges::find(found->sizes, size) == found->sizes.end()) {
        return std::nullopt;
    }
    return DataType{.code = is_native(order) ? found->code : DataCode::opaque,
                    .bits = static_cast<std::uint16_t>(8 * size)};
}

}  // namespace tensorpool
