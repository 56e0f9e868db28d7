#pragma once

#include <cstring>

#include <array>

#include "rest/pieces/piece_codec.hpp"

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

// Loops over whole planes that the compiler turns into vector instructions. Elements may lie at any
// address.

template <class Element, bool is_rotated>
void split(const std::byte* from, std::size_t count, std::byte* to) noexcept {
    for (std::size_t plane = 0; plane < sizeof(Element); ++plane) {
        std::byte* const out = to + plane * count;
        for (std::size_t i = 0; i < count; ++i) {
            Element element;
            std::memcpy(&element, from + i * sizeof(Element), sizeof(Element));
            if constexpr (is_rotated) element = std::rotl(element, 1);
            out[i] = static_cast<std::byte>(element >> (8 * plane));
        }
    }
}

template <class Element, bool is_rotated, std::size_t... plane>
void merge(const PlanePointers& planes, std::size_t count, std::byte* to,
           std::index_sequence<plane...>) noexcept {
    const std::byte* const in[] = {planes[plane]...};
    for (std::size_t i = 0; i < count; ++i) {
        auto element =
            static_cast<Element>((... | (static_cast<Element>(in[plane][i]) << (8 * plane))));
        if constexpr (is_rotated) element = std::rotr(element, 1);
        std::memcpy(to + i * sizeof(Element), &element, sizeof(Element));
    }
}

/// Calls `use` with the type of an element, and whether it is rotated, as template arguments.
template <class Use>
void with_element(const ElementLayout& layout, const Use& use) noexcept {
    const auto with_type = [&]<class Element>(Element) {
        layout.is_rotated ? use.template operator()<Element, true>()
                          : use.template operator()<Element, false>();
    };
    if (layout.width == 2) return with_type(std::uint16_t{});
    if (layout.width == 4) return with_type(std::uint32_t{});
    with_type(std::uint64_t{});
}

inline bool is_constant(std::span<const std::byte> plane) noexcept {
    return std::memcmp(plane.data(), plane.data() + 1, plane.size() - 1) == 0;
}

/// Returns the bytes of the frame; 0 if it is not smaller than `capacity`.
inline std::size_t compress_zstd(std::span<const std::byte> plane, ZstdUse use, std::byte* out,
                                 std::size_t capacity, ZSTD_CCtx* context) noexcept {
    const ZSTD_compressionParameters parameters = zstd_parameters(use, plane.size());
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    const auto set = [context](ZSTD_cParameter parameter, unsigned value) {
        ZSTD_CCtx_setParameter(context, parameter, static_cast<int>(value));
    };
    set(ZSTD_c_windowLog, parameters.windowLog);
    set(ZSTD_c_chainLog, parameters.chainLog);
    set(ZSTD_c_hashLog, parameters.hashLog);
    set(ZSTD_c_searchLog, parameters.searchLog);
    set(ZSTD_c_minMatch, parameters.minMatch);
    set(ZSTD_c_targetLength, parameters.targetLength);
    set(ZSTD_c_strategy, parameters.strategy);
    // ZSTD_ps_enable and ZSTD_ps_disable, which had other names before zstd 1.5. By default a fast
    // search would leave literals raw.
    set(ZSTD_c_literalCompressionMode, use == ZstdUse::fast_matches ? 2 : 1);
    const std::size_t bytes = ZSTD_compress2(context, out, capacity, plane.data(), plane.size());
    return ZSTD_isError(bytes) != 0 ? 0 : bytes;
}

inline std::size_t compress_lz4(std::span<const std::byte> plane, std::byte* out,
                                std::size_t capacity, void* state) noexcept {
    const int bytes = LZ4_compress_fast_extState(
        state, reinterpret_cast<const char*>(plane.data()), reinterpret_cast<char*>(out),
        static_cast<int>(plane.size()), static_cast<int>(capacity), 1);
    return bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
}

/// Splits `count` elements at `from` into planes of `count` bytes, which lie one after another at
/// `to`. REQUIRES: a layout with more than one plane.
inline void split_planes(const std::byte* from, std::size_t count, const ElementLayout& layout,
                         std::byte* to) noexcept {
    with_element(layout, [&]<class Element, bool is_rotated> {
        split<Element, is_rotated>(from, count, to);
    });
}
/// Reverses `split_planes`. The planes may lie anywhere.
inline void merge_planes(const PlanePointers& planes, std::size_t count,
                         const ElementLayout& layout, std::byte* to) noexcept {
    with_element(layout, [&]<class Element, bool is_rotated> {
        merge<Element, is_rotated>(planes, count, to, std::make_index_sequence<sizeof(Element)>());
    });
}

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
inline EncodedPlane encode_plane(std::span<const std::byte> plane, Effort effort, std::byte* out,
                                 PieceWorkspace& workspace) noexcept {
    if (is_constant(plane)) {
        *out = plane.front();
        return {Coding::constant, 1};
    }
    // 1/64 less at least, or decoding is not worth it.
    const std::size_t capacity = plane.size() - plane.size() / 64;
    if (effort == Effort::lz4) {
        const std::size_t bytes = compress_lz4(plane, out, capacity, workspace.lz4_state());
        if (bytes != 0) return {Coding::lz4, bytes};
    } else if (effort != Effort::raw) {
        const auto use = effort == Effort::entropy   ? ZstdUse::entropy
                         : effort == Effort::matches ? ZstdUse::matches
                                                     : ZstdUse::fast_matches;
        const std::size_t bytes = compress_zstd(plane, use, out, capacity, workspace.compressor());
        if (bytes != 0) return {Coding::zstd, bytes};
    }
    std::memcpy(out, plane.data(), plane.size());
    return {Coding::raw, plane.size()};
}

/// Decodes a plane into `plane`. Returns false unless it has exactly this size.
[[nodiscard]] inline bool decode_plane(std::span<const std::byte> encoded, Coding coding,
                                       std::span<std::byte> plane,
                                       PieceWorkspace& workspace) noexcept {
    switch (coding) {
        case Coding::raw:
            if (encoded.size() != plane.size()) return false;
            std::memcpy(plane.data(), encoded.data(), plane.size());
            return true;
        case Coding::constant:
            if (encoded.size() != 1) return false;
            std::memset(plane.data(), static_cast<int>(encoded.front()), plane.size());
            return true;
        case Coding::lz4:
            return LZ4_decompress_safe(
                       reinterpret_cast<const char*>(encoded.data()),
                       reinterpret_cast<char*>(plane.data()), static_cast<int>(encoded.size()),
                       static_cast<int>(plane.size())) == static_cast<int>(plane.size());
        case Coding::zstd:
            return ZSTD_decompressDCtx(workspace.decompressor(), plane.data(), plane.size(),
                                       encoded.data(), encoded.size()) == plane.size();
    }
    return false;
}

}  // namespace tensorpool::stashing
