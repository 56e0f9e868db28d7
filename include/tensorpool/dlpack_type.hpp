#pragma once

/// @file
/// DLPack's descriptions of element types and devices.

#include <iterator>
#include <limits>
#include <stdexcept>

#include <dlpack/dlpack.h>

#include <tensorpool/data_type.hpp>

namespace tensorpool {

/// The DLPack type of elements of type T: its member `value`. It is defined for integers,
/// floating-point types and std::complex. Specialise it for a half or a bfloat16 of your own. It is
/// not defined for bool, because DLPack 0.6 has no such type.
template <class T>
struct DlpackType;

/// The DLPack type of an integer.
template <std::integral T>
struct DlpackType<T> {
    /// The description.
    static constexpr DLDataType value = {std::signed_integral<T> ? kDLInt : kDLUInt, 8 * sizeof(T),
                                         1};
};
/// Not defined: DLPack 0.6 has no type for bool.
template <>
struct DlpackType<bool>;
/// The DLPack type of a floating-point number.
template <std::floating_point T>
struct DlpackType<T> {
    /// The description.
    static constexpr DLDataType value = {kDLFloat, 8 * sizeof(T), 1};
};
/// The DLPack type of a complex number of two floats.
template <>
struct DlpackType<std::complex<float>> {
    /// The description.
    static constexpr DLDataType value = {kDLComplex, 64, 1};
};
/// The DLPack type of a complex number of two doubles.
template <>
struct DlpackType<std::complex<double>> {
    /// The description.
    static constexpr DLDataType value = {kDLComplex, 128, 1};
};

/// A type that DLPack can describe.
template <class T>
concept DlpackElement = requires {
    { DlpackType<T>::value } -> std::convertible_to<DLDataType>;
};
static_assert(DlpackElement<float> && DlpackElement<std::uint8_t> && !DlpackElement<bool>);

namespace detail {

/// Returns the type as text, such as "float32", followed by the lanes of a vector: "float32x4".
inline std::string dlpack_text(DLDataType type) {
    static constexpr const char* names[] = {"int", "uint", "float", "opaque", "bfloat", "complex"};
    std::string text = type.code < std::size(names) ? names[type.code] : "code ";
    if (type.code >= std::size(names)) text.append(std::to_string(type.code)).append(" of ");
    text.append(std::to_string(type.bits));
    if (type.lanes != 1) text.append("x").append(std::to_string(type.lanes));
    return text;
}

/// Returns the device as text, such as "CUDA 1".
inline std::string dlpack_text(DLDevice device) {
    static constexpr const char* names[] = {
        "device type 0", "CPU",           "CUDA",      "pinned CUDA", "OpenCL",
        "device type 5", "device type 6", "Vulkan",    "Metal",       "VPI",
        "ROCm",          "pinned ROCm",   "extension", "managed CUDA"};
    const auto type = static_cast<unsigned>(device.device_type);
    std::string text = type < std::size(names) ? names[type] : "device type ";
    if (type >= std::size(names)) text.append(std::to_string(type));
    return text.append(" ").append(std::to_string(device.device_id));
}

}  // namespace detail

/// Returns the type in DLPack's form. Throws std::invalid_argument for block types of ggml and for
/// no type, and if bits or lanes exceed what DLPack can express (255 and 65535).
[[nodiscard]] inline DLDataType dlpack_type(const DataType& type) {
    constexpr auto max_bits = std::numeric_limits<std::uint8_t>::max();
    constexpr auto max_lanes = std::numeric_limits<std::uint16_t>::max();
    if (type.code == DataCode::ggml_block || type.bits == 0 || type.lanes == 0 ||
        type.bits > max_bits || type.lanes > max_lanes) {
        throw std::invalid_argument("tensorpool: dlpack_type: " + to_string(type) +
                                    ", expected a type that DLPack has");
    }
    return {static_cast<std::uint8_t>(type.code), static_cast<std::uint8_t>(type.bits),
            static_cast<std::uint16_t>(type.lanes)};
}
/// Returns a type of DLPack as a DataType.
[[nodiscard]] constexpr DataType data_type(const DLDataType& type) noexcept {
    return {.code = static_cast<DataCode>(type.code), .bits = type.bits, .lanes = type.lanes};
}

}  // namespace tensorpool
