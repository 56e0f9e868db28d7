#include "models/byte_reader.hpp"

#include <boost/locale/utf.hpp>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

void ByteReader::fail(Field field, std::uint64_t offset, const std::string& problem) const {
    std::string text;
    if (thing_ != nullptr) {
        text = std::string(thing_) + ' ' + std::to_string(index_);
        if (named_) text += ' ' + in_quotes(name_);
        text += ": ";
    }
    text += std::string(field.prefix) + field.name;
    if (field.numbered) text += ' ' + std::to_string(field.number);
    throw ModelFileError(*file_name_, text, offset, problem);
}

void ByteReader::fail_short(Field field, std::uint64_t bytes) const {
    fail(field, position_,
         "found " + std::to_string(left()) + " B to the end, expected " + std::to_string(bytes) +
             " B");
}

void ByteReader::fail_count(Field field, std::uint64_t offset, std::uint64_t count,
                            std::uint64_t min_bytes) const {
    fail(field, offset,
         "found " + std::to_string(count) + ", expected at most " +
             std::to_string(left() / min_bytes) + ": each takes at least " +
             std::to_string(min_bytes) + " B, and " + std::to_string(left()) + " B are left");
}

namespace {

constexpr std::size_t cut_bytes = 80;

std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint8_t>(text[at]);
}

bool is_ascii(std::string_view text) noexcept {
    std::uint64_t high_bits = 0;
    while (text.size() >= sizeof high_bits) {
        std::uint64_t eight;
        std::memcpy(&eight, text.data(), sizeof eight);
        high_bits |= eight;
        text.remove_prefix(sizeof eight);
    }
    std::uint8_t rest = 0;
    for (const char byte : text) rest |= static_cast<std::uint8_t>(byte);
    return (high_bits & 0x8080808080808080U) == 0 && rest < 0x80;
}

/// Returns the bytes of the character that begins here; 0 if none does.
std::size_t character_bytes(std::string_view text) noexcept {
    const char* end = text.data();
    const auto character =
        boost::locale::utf::utf_traits<char>::decode(end, text.data() + text.size());
    const bool is_valid = boost::locale::utf::is_valid_codepoint(character);
    return is_valid ? static_cast<std::size_t>(end - text.data()) : 0;
}

/// Returns whether a terminal may interpret the character: those below a space, and U+0080 to
/// U+009F, one of which begins escape sequences.
bool is_control(std::string_view character) noexcept {
    const std::uint8_t first = byte_at(character, 0);
    return first < 0x20 || first == 0x7f || (first == 0xc2 && byte_at(character, 1) < 0xa0);
}

std::string escaped(std::string_view bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::uint8_t byte = byte_at(bytes, i);
        text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
    if (is_ascii(text)) return true;
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        if (bytes == 0) return false;
        text.remove_prefix(bytes);
    }
    return true;
}

std::string in_quotes(std::string_view text) {
    std::string to = "'";
    while (!text.empty() && to.size() < cut_bytes) {
        const std::size_t bytes = character_bytes(text);
        const std::string_view next = text.substr(0, bytes == 0 ? 1 : bytes);
        to += bytes == 0 || is_control(next) ? escaped(next) : std::string(next);
        text.remove_prefix(next.size());
    }
    return to + (text.empty() ? "'" : "…'");
}

}  // namespace tensorpool::files
