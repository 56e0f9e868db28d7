#include "rest/pieces/piece_workspace.hpp"

#include <lz4.h>

#include <utility>

#include "base/alignment.hpp"

namespace tensorpool::stashing {
namespace {

struct Parts {
    std::size_t planes;
    std::size_t lz4;
    std::size_t compressor;
    std::size_t decompressor;

    std::size_t total() const noexcept { return planes + lz4 + compressor + decompressor; }
};

std::size_t rounded(std::size_t bytes) noexcept {
    return base::align_up(bytes, PieceWorkspace::alignment);
}

Parts parts_for(std::size_t piece_bytes) noexcept {
    return {.planes = rounded(piece_bytes),
            .lz4 = rounded(static_cast<std::size_t>(LZ4_sizeofState())),
            .compressor = rounded(ZSTD_estimateCCtxSize_usingCParams(
                zstd_parameters(ZstdUse::fast_matches, piece_bytes))),
            .decompressor = rounded(ZSTD_estimateDCtxSize())};
}

}  // namespace

std::size_t PieceWorkspace::bytes_for(std::size_t piece_bytes) noexcept {
    return parts_for(piece_bytes).total();
}

PieceWorkspace::PieceWorkspace(std::span<std::byte> memory, std::size_t piece_bytes) noexcept {
    const Parts parts = parts_for(piece_bytes);
    std::byte* next = memory.data();
    const auto take = [&next](std::size_t bytes) { return std::exchange(next, next + bytes); };
    planes_ = {take(parts.planes), piece_bytes};
    lz4_state_ = take(parts.lz4);
    compressor_ = ZSTD_initStaticCCtx(take(parts.compressor), parts.compressor);
    decompressor_ = ZSTD_initStaticDCtx(take(parts.decompressor), parts.decompressor);
}

}  // namespace tensorpool::stashing
