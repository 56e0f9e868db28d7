#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace tensorpool::files
