#pragma once

/// @file
/// How the elements of a tensor are stored, and how many bytes they take.

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The kinds of elements: the codes of DLPack (DLDataTypeCode, version 1.1), and one for the block
/// types of ggml.
enum class DataCode : std::uint8_t {
    signed_integer = 0,      ///< a signed integer
    unsigned_integer = 1,    ///< an unsigned integer
    floating = 2,            ///< a floating-point number of IEEE 754
    opaque = 3,              ///< bytes of any meaning: texts, times, the other byte order
    bfloat = 4,              ///< the upper half of a 32-bit floating-point number
    complex = 5,             ///< two floating-point numbers; `bits` counts both
    boolean = 6,             ///< a truth value
    float8_e3m4 = 7,         ///< 8 bits
    float8_e4m3 = 8,         ///< 8 bits
    float8_e4m3b11fnuz = 9,  ///< 8 bits
    float8_e4m3fn = 10,      ///< 8 bits; safetensors calls it F8_E4M3
    float8_e4m3fnuz = 11,    ///< 8 bits
    float8_e5m2 = 12,        ///< 8 bits
    float8_e5m2fnuz = 13,    ///< 8 bits
    float8_e8m0fnu = 14,     ///< 8 bits, a power of two; safetensors calls it F8_E8M0
    float6_e2m3fn = 15,      ///< 6 bits
    float6_e3m2fn = 16,      ///< 6 bits
    float4_e2m1fn = 17,      ///< 4 bits
    ggml_block = 255,        ///< a block type of ggml, such as Q4_K
};

/// How the elements of a tensor are stored: a type of DLPack by its code, bits and lanes, or a
/// block type of ggml by its number. A small value; the default is no type.
struct DataType {
    /// The kind of elements.
    DataCode code = DataCode::opaque;
    /// For `ggml_block`, the number in ggml's `enum ggml_type`; otherwise 0.
    std::uint8_t ggml_type = 0;
    /// The bits of a lane, such as 32; 0 for a block type of ggml and for no type.
    std::uint16_t bits = 0;
    /// The lanes of an element: more than 1 for vectors, and for texts, whose characters they are.
    std::uint32_t lanes = 1;

    /// Returns the type of elements of the C++ type T: an integer, bool, a floating-point number or
    /// a std::complex. `const` and `volatile` make no difference.
    template <class T>
    static constexpr DataType of() noexcept;

    /// Returns the number of elements in a block: the smallest number that fills whole bytes, or
    /// what ggml stores together. 1 for most types; 0 for no type and for a number that ggml has
    /// not assigned.
    TENSORPOOL_API std::uint64_t block_elements() const noexcept;
    /// Returns the bytes of a block; 0 for no type and for a number that ggml has not assigned.
    TENSORPOOL_API std::uint64_t block_bytes() const noexcept;

    /// Returns whether two types are equal.
    friend constexpr bool operator==(const DataType&, const DataType&) noexcept = default;
};

namespace detail {
template <class T>
inline constexpr std::uint16_t complex_bits = 0;
template <class T>
inline constexpr std::uint16_t complex_bits<std::complex<T>> = 16 * sizeof(T);
}  // namespace detail

template <class T>
constexpr DataType DataType::of() noexcept {
    using Value = std::remove_cv_t<T>;
    constexpr std::uint16_t bits = 8 * sizeof(Value);
    if constexpr (std::same_as<Value, bool>) {
        return {.code = DataCode::boolean, .bits = bits};
    } else if constexpr (std::signed_integral<Value>) {
        return {.code = DataCode::signed_integer, .bits = bits};
    } else if constexpr (std::unsigned_integral<Value>) {
        return {.code = DataCode::unsigned_integer, .bits = bits};
    } else if constexpr (std::floating_point<Value>) {
        return {.code = DataCode::floating, .bits = bits};
    } else {
        static_assert(detail::complex_bits<Value> != 0, "T is no number");
        return {.code = DataCode::complex, .bits = detail::complex_bits<Value>};
    }
}

/// Returns the type as text, such as "float32", "bfloat16", "opaque8x12" or "Q4_K"; "none" for no
/// type.
TENSORPOOL_API std::string to_string(const DataType& type);

/// Returns the type of ggml with this number of `enum ggml_type`: a block type, or the type of
/// DLPack that a plain one is. Returns std::nullopt if ggml has not assigned the number, or has
/// removed the type.
TENSORPOOL_API std::optional<DataType> find_ggml_type(std::uint32_t number) noexcept;
/// Returns the type of ggml with this name, such as "Q4_K" or "F16". Returns std::nullopt for other
/// names, and for types that ggml has removed.
TENSORPOOL_API std::optional<DataType> find_ggml_type(std::string_view name) noexcept;
/// Returns the type that safetensors calls by this name, such as "BF16" or "F8_E4M3". Returns
/// std::nullopt for other names.
TENSORPOOL_API std::optional<DataType> find_safetensors_type(std::string_view name) noexcept;
/// Returns the type that NumPy writes as `descr`, such as "<f4", ">i8", "|S12" or "<M8[ns]".
/// Numbers of the other byte order, texts and times are opaque. Returns std::nullopt for Python
/// objects and for texts that NumPy does not write.
TENSORPOOL_API std::optional<DataType> find_numpy_type(std::string_view descr) noexcept;

/// Returns the bytes of `elements` elements that lie one after another.
///
/// Throws std::invalid_argument, naming what was found and what was expected, for no type, if the
/// elements do not fill whole blocks, and if the bytes exceed 2^63 - 1.
TENSORPOOL_API std::uint64_t row_bytes(const DataType& type, std::uint64_t elements);

/// Returns the bytes of a tensor of this shape without gaps. `shape` has the extent of each
/// dimension, the slowest first; empty means one element.
///
/// Each row of a block type of ggml, the last dimension, must consist of whole blocks. The elements
/// of other types below a byte must fill whole bytes all together. Throws std::invalid_argument,
/// naming what was found and what was expected, if they do not, for no type, and if the elements or
/// bytes, with extents of 0 left out, exceed 2^63 - 1.
TENSORPOOL_API std::uint64_t tensor_bytes(const DataType& type,
                                          std::span<const std::uint64_t> shape);
/// Returns the bytes of a tensor of this shape without gaps. `shape` has the extent of each
/// dimension, the slowest first; empty means one element.
///
/// Throws std::invalid_argument, naming what was found and what was expected, for a negative
/// extent, for no type, if the elements do not fill whole blocks, and if the elements or bytes,
/// with extents of 0 left out, exceed 2^63 - 1.
TENSORPOOL_API std::uint64_t tensor_bytes(const DataType& type,
                                          std::span<const std::int64_t> shape);
/// Returns the bytes of a tensor of this shape without gaps, such as
/// `tensor_bytes(*find_ggml_type("Q4_K"), {32, 4096})`.
///
/// Throws std::invalid_argument, naming what was found and what was expected, for no type, if the
/// elements do not fill whole blocks, and if the elements or bytes, with extents of 0 left out,
/// exceed 2^63 - 1.
inline std::uint64_t tensor_bytes(const DataType& type,
                                  std::initializer_list<std::uint64_t> shape) {
    return tensor_bytes(type, std::span<const std::uint64_t>(shape.begin(), shape.size()));
}

}  // namespace tensorpool
