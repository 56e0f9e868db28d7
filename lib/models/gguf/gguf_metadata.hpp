#pragma once

#include <tensorpool/model_file.hpp>

#include "models/byte_reader.hpp"

namespace tensorpool::files {

/// A type of GGUF metadata. `bytes` is 0 for strings and arrays, which contain their own length.
struct GgufValueType {
    std::string_view name;
    std::uint8_t bytes;
};

enum class GgufValue : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    string,
    array,
    u64,
    i64,
    f64,
};

inline constexpr std::uint32_t gguf_value_types = 13;

const GgufValueType& gguf_value_type(GgufValue type) noexcept;

/// Reads a string of GGUF: its length, then its bytes.
std::string_view read_gguf_string(ByteReader& in, Field length, Field text);

/// Reads a metadata value, preceded by its type. Arrays are checked, but not unpacked.
MetadataValue read_gguf_value(ByteReader& in);

}  // namespace tensorpool::files
