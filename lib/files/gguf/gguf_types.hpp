#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

/// A tensor type of ggml.
struct GgmlType {
    ElementType type;
    bool removed = false;  ///< ggml keeps only the number of this type
};

/// Returns the type with this number, or nullptr if ggml has not assigned it.
const GgmlType* ggml_type(std::uint32_t number) noexcept;
/// Returns how many numbers ggml has assigned.
std::uint32_t ggml_type_count() noexcept;

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
