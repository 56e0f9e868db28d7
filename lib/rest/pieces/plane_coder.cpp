#include "rest/pieces/plane_coder.hpp"

#include <lz4.h>

#include <cstring>

namespace tensorpool::stashing {
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
