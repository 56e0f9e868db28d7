#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <boost/endian/conversion.hpp>

namespace tensorpool::files {

/// Returns whether `text` is strict UTF-8: no overlong forms, no surrogates, nothing above
/// U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

/// Returns `text` in single quotes, for errors. Control characters and bytes that are not UTF-8 are
/// escaped, since files may be hostile, and the text is cut to about 80 bytes.
std::string in_quotes(std::string_view text);

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
    [[noreturn]] void fail(Field field, std::uint64_t offset, const std::string& problem) const;
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
    [[noreturn]] void fail_short(Field field, std::uint64_t bytes) const;
    [[noreturn]] void fail_count(Field field, std::uint64_t offset, std::uint64_t count,
                                 std::uint64_t min_bytes) const;

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
