#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::testing {

/// A field of a file written by a test: its name in errors, and its position.
struct WrittenField {
    std::string name;
    std::uint64_t offset;
    std::size_t bytes;
};

/// A little-endian file in memory, with the positions of its fields. Shares no code with the
/// readers.
class WrittenFile {
public:
    std::span<const std::byte> view() const { return std::as_bytes(std::span(bytes_)); }
    const std::string& bytes() const { return bytes_; }
    std::uint64_t size() const { return bytes_.size(); }

    const std::vector<WrittenField>& fields() const { return fields_; }
    /// Throws std::out_of_range if no field has this name.
    const WrittenField& field(std::string_view name) const {
        for (const WrittenField& field : fields_) {
            if (field.name == name) return field;
        }
        throw std::out_of_range("the written file has no field '" + std::string(name) + "'");
    }

    void cut_to(std::uint64_t bytes) { bytes_.resize(bytes); }
    void append(std::string_view bytes) { bytes_ += bytes; }
    /// Appends a number with the size of `Number`.
    template <class Number>
    void append_number(Number number) {
        append(little_endian(number, sizeof number));
    }
    void append_text(const std::string& field, std::string_view text) {
        fields_.push_back({field, size(), text.size()});
        append(text);
    }
    template <class Number>
    void append_field(const std::string& field, Number number) {
        fields_.push_back({field, size(), sizeof number});
        append_number(number);
    }
    /// Appends zeros up to a multiple of `alignment`.
    void pad_to(std::uint64_t alignment) {
        bytes_.resize((size() + alignment - 1) / alignment * alignment);
    }
    /// Overwrites a field with a number of the same size.
    void overwrite(std::string_view name, std::uint64_t number) {
        const WrittenField& to = field(name);
        overwrite_at(to.offset, little_endian(number, to.bytes));
    }
    void overwrite_at(std::uint64_t offset, std::string_view bytes) {
        for (const char byte : bytes) bytes_.at(offset++) = byte;
    }

private:
    template <class Number>
    static std::string little_endian(Number number, std::size_t bytes) {
        static_assert(sizeof number <= 8);
        std::uint64_t bits = 0;
        if constexpr (std::is_same_v<Number, float>) {
            bits = std::bit_cast<std::uint32_t>(number);
        } else if constexpr (std::is_same_v<Number, double>) {
            bits = std::bit_cast<std::uint64_t>(number);
        } else {
            bits = static_cast<std::uint64_t>(number);
        }
        std::string text;
        for (std::size_t i = 0; i < bytes; ++i) {
            text += static_cast<char>(static_cast<unsigned char>(i < 8 ? bits >> (8 * i) : 0));
        }
        return text;
    }

    std::string bytes_;
    std::vector<WrittenField> fields_;
};

}  // namespace tensorpool::testing
