#include "rest/pieces/planes.hpp"

#include <cstring>

// Loops over whole planes that the compiler turns into vector instructions. Elements may lie at any
// address.

namespace tensorpool::stashing {
namespace {

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

}  // namespace

void split_planes(const std::byte* from, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept {
    with_element(layout, [&]<class Element, bool is_rotated> {
        split<Element, is_rotated>(from, count, to);
    });
}

void merge_planes(const PlanePointers& planes, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept {
    with_element(layout, [&]<class Element, bool is_rotated> {
        merge<Element, is_rotated>(planes, count, to, std::make_index_sequence<sizeof(Element)>());
    });
}
namespace {

bool is_constant(std::span<const std::byte> plane) noexcept {
    return std::memcmp(plane.data(), plane.data() + 1, plane.size() - 1) == 0;
}

/// Returns the bytes of the frame; 0 if it is not smaller than `capacity`.
std::size_t compress_zstd(std::span<const std::byte> plane, ZstdUse use, std::byte* out,
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

std::size_t compress_lz4(std::span<const std::byte> plane, std::byte* out, std::size_t capacity,
                         void* state) noexcept {
    const int bytes = LZ4_compress_fast_extState(
        state, reinterpret_cast<const char*>(plane.data()), reinterpret_cast<char*>(out),
        static_cast<int>(plane.size()), static_cast<int>(capacity), 1);
    return bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
}

}  // namespace

EncodedPlane encode_plane(std::span<const std::byte> plane, Effort effort, std::byte* out,
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

bool decode_plane(std::span<const std::byte> encoded, Coding coding, std::span<std::byte> plane,
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
