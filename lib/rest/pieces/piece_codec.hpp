#pragma once

/// @file
/// Encodes and decodes one piece of a tensor. Both allocate nothing, take no lock and make no
/// system call: a workspace holds all that they need, so a handler of page faults can use them.
///
/// A piece is bit-exact after decoding. Its encoding carries a checksum of the *decoded* bytes: it
/// covers the memory that holds the encoding, the decoders, and the merging of planes alike.

#include <algorithm>
#include <utility>

#include <lz4.h>
// The functions that work in given memory are in this section of the header.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <tensorpool/data_type.hpp>

#include "base/alignment.hpp"

namespace tensorpool::stashing {

/// How zstd compresses a plane.
enum class ZstdUse {
    entropy,  ///< codes each byte by its frequency; looks for repetitions in few positions only
    matches,  ///< looks for repetitions, as zstd's level 1
    fast_matches,  ///< looks for repetitions from 4 bytes too, and leaves the rest as it is
};

/// Returns the parameters of zstd for planes of up to `plane_bytes` bytes. `fast_matches` needs the
/// most memory.
inline ZSTD_compressionParameters zstd_parameters(ZstdUse use, std::size_t plane_bytes) noexcept {
    const unsigned window =
        std::clamp(static_cast<unsigned>(std::bit_width(plane_bytes)), 10U, 21U);
    ZSTD_compressionParameters parameters = {};
    parameters.windowLog = window;
    parameters.chainLog = ZSTD_CHAINLOG_MIN;
    parameters.searchLog = ZSTD_SEARCHLOG_MIN;
    parameters.strategy = ZSTD_fast;
    if (use == ZstdUse::entropy) {
        // Short matches in random bytes save little, and each costs the decoder as much time as
        // ten literals: perf/results/stash.md.
        parameters.hashLog = 12;
        parameters.minMatch = ZSTD_MINMATCH_MAX;
        parameters.targetLength = 50;
    } else if (use == ZstdUse::matches) {
        parameters.hashLog = 14;
        parameters.minMatch = 6;
        parameters.targetLength = 1;
    } else {
        // Elements of known values, such as pictures, repeat in units as short as one float.
        parameters.hashLog = 14;
        parameters.chainLog = 14;
        parameters.minMatch = 4;
        parameters.strategy = ZSTD_dfast;
    }
    return parameters;
}

/// The memory in which pieces of up to a certain size are encoded and decoded: room for the planes
/// of a piece, and the states of the compressors. One thread at a time may use it.
class PieceWorkspace {
public:
    static constexpr std::size_t alignment = 64;

    /// Returns the bytes of a workspace for pieces of up to `piece_bytes` bytes.
    static std::size_t bytes_for(std::size_t piece_bytes) noexcept {
        return parts_for(piece_bytes).total();
    }

    /// Makes a workspace in `memory`, which must stay as long as the workspace is in use. It must
    /// have `bytes_for(piece_bytes)` bytes and be aligned. Allocates nothing.
    PieceWorkspace(std::span<std::byte> memory, std::size_t piece_bytes) noexcept {
        const Parts parts = parts_for(piece_bytes);
        std::byte* next = memory.data();
        const auto take = [&next](std::size_t bytes) { return std::exchange(next, next + bytes); };
        planes_ = {take(parts.planes), piece_bytes};
        lz4_state_ = take(parts.lz4);
        compressor_ = ZSTD_initStaticCCtx(take(parts.compressor), parts.compressor);
        decompressor_ = ZSTD_initStaticDCtx(take(parts.decompressor), parts.decompressor);
    }
    PieceWorkspace(const PieceWorkspace&) = delete;
    PieceWorkspace& operator=(const PieceWorkspace&) = delete;

    std::size_t piece_bytes() const noexcept { return planes_.size(); }
    std::span<std::byte> planes() const noexcept { return planes_; }
    void* lz4_state() const noexcept { return lz4_state_; }
    ZSTD_CCtx* compressor() const noexcept { return compressor_; }
    ZSTD_DCtx* decompressor() const noexcept { return decompressor_; }

private:
    struct Parts {
        std::size_t planes;
        std::size_t lz4;
        std::size_t compressor;
        std::size_t decompressor;

        std::size_t total() const noexcept { return planes + lz4 + compressor + decompressor; }
    };

    static std::size_t rounded(std::size_t bytes) noexcept {
        return base::align_up(bytes, alignment);
    }
    static Parts parts_for(std::size_t piece_bytes) noexcept {
        return {.planes = rounded(piece_bytes),
                .lz4 = rounded(static_cast<std::size_t>(LZ4_sizeofState())),
                .compressor = rounded(ZSTD_estimateCCtxSize_usingCParams(
                    zstd_parameters(ZstdUse::fast_matches, piece_bytes))),
                .decompressor = rounded(ZSTD_estimateDCtxSize())};
    }

    std::span<std::byte> planes_;
    void* lz4_state_ = nullptr;
    ZSTD_CCtx* compressor_ = nullptr;
    ZSTD_DCtx* decompressor_ = nullptr;
};

/// The size of a piece unless a caller has a reason for another one. Also the smallest size that is
/// worth its header and its tables.
inline constexpr std::size_t default_piece_bytes = std::size_t{64} << 10;
inline constexpr std::size_t max_piece_bytes = std::size_t{1} << 20;

std::size_t max_encoded_bytes(std::size_t piece_bytes) noexcept;

/// Encodes a piece of at least one byte and at most what the workspace is for. `type` selects how
/// it is divided into planes; any type is correct for any bytes. Returns the number of bytes
/// written to `out`, which must have room for `max_encoded_bytes(piece.size())`.
std::size_t encode_piece(std::span<const std::byte> piece, const DataType& type,
                         std::span<std::byte> out, PieceWorkspace& workspace) noexcept;

/// Decodes an encoding into `piece`, whose size must be that of the encoded piece. Returns false if
/// the encoding is damaged or belongs to a piece of another size; the content of `piece` is then
/// undefined. Reads and writes only the given ranges, whatever the bytes of the encoding are.
[[nodiscard]] bool decode_piece(std::span<const std::byte> encoded, std::span<std::byte> piece,
                                PieceWorkspace& workspace) noexcept;

}  // namespace tensorpool::stashing
