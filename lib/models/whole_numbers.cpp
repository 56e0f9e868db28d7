#include <tensorpool/model_file.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tensorpool {
namespace {

/// Reads little-endian elements, the byte order of GGUF and of all machines that build this.
template <class Element>
std::vector<std::int64_t> read(const MetadataArray& array, std::size_t max) {
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::size_t count = static_cast<std::size_t>(
        std::min<std::uint64_t>({array.count, max, array.bytes.size() / sizeof(Element)}));
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        Element element;
        std::memcpy(&element, array.bytes.data() + i * sizeof(Element), sizeof(Element));
        if constexpr (sizeof(Element) == 8 && !std::is_signed_v<Element>) {
            values[i] = static_cast<std::int64_t>(std::min<std::uint64_t>(element, limit));
        } else {
            // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number, not a character.
            values[i] = static_cast<std::int64_t>(element);
        }
    }
    return values;
}

}  // namespace

std::optional<std::vector<std::int64_t>> whole_numbers(const MetadataArray& array,
                                                       std::size_t max) {
    const std::string_view type = array.type;
    if (type == "u8" || type == "bool") return read<std::uint8_t>(array, max);
    if (type == "i8") return read<std::int8_t>(array, max);
    if (type == "u16") return read<std::uint16_t>(array, max);
    if (type == "i16") return read<std::int16_t>(array, max);
    if (type == "u32") return read<std::uint32_t>(array, max);
    if (type == "i32") return read<std::int32_t>(array, max);
    if (type == "u64") return read<std::uint64_t>(array, max);
    if (type == "i64") return read<std::int64_t>(array, max);
    return std::nullopt;
}

}  // namespace tensorpool
