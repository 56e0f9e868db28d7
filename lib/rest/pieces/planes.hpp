#pragma once

#include <array>

#include <tensorpool/data_type.hpp>

#include "rest/pieces/piece_workspace.hpp"

namespace tensorpool::stashing {

/// How the elements of a piece become planes: plane k has byte k of each element, the lowest byte
/// first.
struct ElementLayout {
    /// The bytes of an element, which are the planes: 1, 2, 4 or 8.
    std::uint8_t width = 1;
    /// Whether the sign bit goes below the fraction, so that the highest byte of a float is a part
    /// of its exponent and nothing else.
    bool is_rotated = false;

    friend bool operator==(const ElementLayout&, const ElementLayout&) = default;
};

/// The most planes of a layout.
inline constexpr std::size_t max_planes = 8;

/// Returns the layout for elements of this type. Types whose elements are no larger than a byte,
/// and those whose bytes have unknown meanings, have one plane.
constexpr ElementLayout layout_of(const DataType& type) noexcept {
    const bool is_complex = type.code == DataCode::complex;
    const bool is_float =
        is_complex || type.code == DataCode::floating || type.code == DataCode::bfloat;
    const bool is_integer =
        type.code == DataCode::signed_integer || type.code == DataCode::unsigned_integer;
    const unsigned bits = is_complex ? type.bits / 2U : type.bits;
    if (!is_float && !is_integer) return {};
    if (bits != 16 && bits != 32 && bits != 64) return {};
    return {.width = static_cast<std::uint8_t>(bits / 8), .is_rotated = is_float};
}

/// The planes of a piece that are read: one pointer for each.
using PlanePointers = std::array<const std::byte*, max_planes>;

/// Splits `count` elements at `from` into planes of `count` bytes, which lie one after another at
/// `to`. REQUIRES: a layout with more than one plane.
void split_planes(const std::byte* from, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept;
/// Reverses `split_planes`. The planes may lie anywhere.
void merge_planes(const PlanePointers& planes, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept;

/// How a plane is stored.
enum class Coding : std::uint8_t {
    raw,       ///< its bytes
    constant,  ///< one byte, which all are
    lz4,       ///< a block of LZ4
    zstd,      ///< a frame of zstd
};

/// What the encoder of a plane is to do.
enum class Effort : std::uint8_t {
    raw,
    lz4,
    entropy,       ///< zstd without a search for repetitions
    matches,       ///< zstd with one
    fast_matches,  ///< zstd with one, and without an entropy coder for other bytes
};

struct EncodedPlane {
    Coding coding;
    std::size_t bytes;
};

/// Encodes a plane into `out`, which must have room for the plane. A plane whose bytes are equal
/// becomes constant, and one that does not shrink stays raw, whatever the effort.
EncodedPlane encode_plane(std::span<const std::byte> plane, Effort effort, std::byte* out,
                          PieceWorkspace& workspace) noexcept;

/// Decodes a plane into `plane`. Returns false unless it has exactly this size.
[[nodiscard]] bool decode_plane(std::span<const std::byte> encoded, Coding coding,
                                std::span<std::byte> plane, PieceWorkspace& workspace) noexcept;

}  // namespace tensorpool::stashing
