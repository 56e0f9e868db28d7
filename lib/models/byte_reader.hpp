#pragma once

#include <utility>

#include <boost/endian/conversion.hpp>
#include <boost/locale/utf.hpp>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

inline std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint8_t>(text[at]);
}

inline constexpr std::size_t cut_bytes = 80;

inline bool is_ascii(std::string_view text) noexcept {
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
inline std::size_t character_bytes(std::string_view text) noexcept {
    const char* end = text.data();
    const auto character =
        boost::locale::utf::utf_traits<char>::decode(end, text.data() + text.size());
    const bool is_valid = boost::locale::utf::is_valid_codepoint(character);
    return is_valid ? static_cast<std::size_t>(end - text.data()) : 0;
}

/// Returns whether a terminal may interpret the character: those below a space, and U+0080 to
/// U+009F, one of which begins escape sequences.
inline bool is_control(std::string_view character) noexcept {
    const std::uint8_t first = byte_at(character, 0);
    return first < 0x20 || first == 0x7f || (first == 0xc2 && byte_at(character, 1) < 0xa0);
}

inline std::string escaped(std::string_view bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::uint8_t byte = byte_at(bytes, i);
        text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

/// Returns whether `text` is strict UTF-8: no overlong forms, no surrogates, nothing above
/// U+10FFFF.
inline bool is_utf8(std::string_view text) noexcept {
    if (is_ascii(text)) return true;
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        if (bytes == 0) return false;
        text.remove_prefix(bytes);
    }
    return true;
}

/// Returns `text` in single quotes, for errors. Control characters and bytes that are not UTF-8 are
/// escaped, since files may be hostile, and the text is cut to about 80 bytes.
inline std::string in_quotes(std::string_view text) {
    std::string to = "'";
    while (!text.empty() && to.size() < cut_bytes) {
        const std::size_t bytes = character_bytes(text);
        const std::string_view next = text.substr(0, bytes == 0 ? 1 : bytes);
        to += bytes == 0 || is_control(next) ? escaped(next) : std::string(next);
        text.remove_prefix(next.size());
    }
    return to + (text.empty() ? "'" : "…'");
}

/// The name of a field in errors: "offset", or with a number, "dimension 2", or with a prefix,
/// "local size".
struct Field {
    Field(const char* field_name) noexcept : name(field_name) {}
    Field(const char* field_name, std::uint64_t field_number) noexcept
        : name(field_name), number(field_number), numbered(true) {}

    Field(const char* field_prefix, const char* field_name) noexcept
        : name(field_name), prefix(field_prefix) {}

    const char* name;
    const char* prefix = "";
    std::uint64_t number = 0;
    bool numbered = false;
};

/// Walks a part of a file that may be hostile: every read is checked against the bytes that are
/// left. Numbers are little-endian. Errors are ModelFileErrors; their text is composed only when
/// they are thrown.
class ByteReader {
public:
    /// Reads the bytes from `begin` to `end` of a file. `file` and `file_name` must outlive the
    /// reader.
    ByteReader(std::span<const std::byte> file, std::uint64_t begin, std::uint64_t end,
               const std::string& file_name) noexcept
        : file_(file), position_(begin), end_(end), file_name_(&file_name) {}
    ByteReader(std::span<const std::byte> file, const std::string& file_name) noexcept
        : ByteReader(file, 0, file.size(), file_name) {}

    /// Returns a reader of other bytes of the file, with the same names in errors.
    ByteReader part(std::uint64_t begin, std::uint64_t end) const noexcept {
        ByteReader other = *this;
        other.position_ = begin;
        other.end_ = end;
        return other;
    }

    /// Names the thing to which the following fields belong: "tensor 3". `call` adds its name once
    /// it is known: "tensor 3 'x'".
    void enter(const char* thing, std::uint64_t index) noexcept {
        thing_ = thing;
        index_ = index;
        named_ = false;
    }
    void call(std::string_view name) noexcept {
        name_ = name;
        named_ = true;
    }
    void leave() noexcept { thing_ = nullptr; }

    std::uint64_t position() const noexcept { return position_; }
    std::uint64_t left() const noexcept { return end_ - position_; }

    template <class Number>
    Number read(Field field) {
        const auto* const bytes =
            reinterpret_cast<const unsigned char*>(take(sizeof(Number), field).data());
        return boost::endian::endian_load<Number, sizeof(Number), boost::endian::order::little>(
            bytes);
    }
    std::span<const std::byte> take(std::uint64_t bytes, Field field) {
        if (bytes > left()) fail_short(field, bytes);
        const auto taken = file_.subspan(position_, bytes);
        position_ += bytes;
        return taken;
    }
    std::string_view take_text(std::uint64_t bytes, Field field) {
        const auto taken = take(bytes, field);
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }
    /// Rejects a count, which has just been read, if so many things of at least `min_bytes` bytes
    /// do not fit into the bytes that are left.
    template <class Number>
    void check_count(Number count, std::uint64_t min_bytes, Field field) const {
        if (count > left() / min_bytes) {
            fail_count(field, position_ - sizeof(Number), count, min_bytes);
        }
    }

    /// Throws an error about a field at byte `offset` of the file.
    [[noreturn]] void fail(Field field, std::uint64_t offset, const std::string& problem) const {
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
    /// Throws "found 5, expected …" about a number that has just been read.
    template <class Number>
    [[noreturn]] void fail_read(Field field, Number found, const std::string& expected) const {
        fail(field, position_ - sizeof(Number),
             "found " + std::to_string(found) + ", expected " + expected);
    }

    /// Throws "found the name of tensor 3 again, …" about `thing` number `index`, called `name`.
    /// `what` is its name or key, whose field is at byte `offset`.
    [[noreturn]] void fail_duplicate(const char* thing, std::uint64_t index, std::string_view name,
                                     std::uint64_t first, const char* what, Field field,
                                     std::uint64_t offset) {
        enter(thing, index);
        call(name);
        fail(field, offset,
             "found the " + std::string(what) + " of " + thing + ' ' + std::to_string(first) +
                 " again, expected each " + what + " once");
    }

private:
    [[noreturn]] void fail_short(Field field, std::uint64_t bytes) const {
        fail(field, position_,
             "found " + std::to_string(left()) + " B to the end, expected " +
                 std::to_string(bytes) + " B");
    }
    [[noreturn]] void fail_count(Field field, std::uint64_t offset, std::uint64_t count,
                                 std::uint64_t min_bytes) const {
        fail(field, offset,
             "found " + std::to_string(count) + ", expected at most " +
                 std::to_string(left() / min_bytes) + ": each takes at least " +
                 std::to_string(min_bytes) + " B, and " + std::to_string(left()) + " B are left");
    }

    // position_ <= end_ <= file_.size().
    std::span<const std::byte> file_;
    std::uint64_t position_;
    std::uint64_t end_;
    const std::string* file_name_;
    const char* thing_ = nullptr;
    std::uint64_t index_ = 0;
    std::string_view name_;
    bool named_ = false;
};

}  // namespace tensorpool::files
