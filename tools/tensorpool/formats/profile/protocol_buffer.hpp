#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tensorpool::command::profile {

/// Encodes a message of protocol buffers, field by field
/// (https://protobuf.dev/programming-guides/encoding).
class ProtocolBuffer {
public:
    /// Adds a field of an integer type. Zero is the default and is left out.
    void add(unsigned field, std::uint64_t number) {
        if (number == 0) return;
        add_varint(std::uint64_t{field} << 3);
        add_varint(number);
    }
    void add(unsigned field, std::string_view bytes) {
        add_varint(std::uint64_t{field} << 3 | 2);
        add_varint(bytes.size());
        bytes_ += bytes;
    }
    void add(unsigned field, const ProtocolBuffer& message) {
        add(field, std::string_view(message.bytes_));
    }
    void add(unsigned field, std::span<const std::uint64_t> numbers) {
        ProtocolBuffer packed;
        for (const std::uint64_t number : numbers) packed.add_varint(number);
        add(field, packed);
    }

    const std::string& bytes() const noexcept { return bytes_; }

private:
    /// Seven bits a byte, the lowest first. The eighth bit says that more follow.
    void add_varint(std::uint64_t number) {
        for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
        bytes_ += static_cast<char>(number);
    }

    std::string bytes_;
};

}  // namespace tensorpool::command::profile
