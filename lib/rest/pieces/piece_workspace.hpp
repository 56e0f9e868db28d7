#pragma once

#include <cstddef>
#include <span>

// The functions that work in given memory are in this section of the header.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstddef>

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

}  // namespace tensorpool::stashing

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tensorpool::stashing {

/// The memory in which pieces of up to a certain size are encoded and decoded: room for the planes
/// of a piece, and the states of the compressors. One thread at a time may use it.
class PieceWorkspace {
public:
    /// The alignment of the memory.
    static constexpr std::size_t alignment = 64;

    /// Returns the bytes of a workspace for pieces of up to `piece_bytes` bytes.
    static std::size_t bytes_for(std::size_t piece_bytes) noexcept;

    /// Makes a workspace in `memory`, which must stay as long as the workspace is in use. It must
    /// have `bytes_for(piece_bytes)` bytes and be aligned. Allocates nothing.
    PieceWorkspace(std::span<std::byte> memory, std::size_t piece_bytes) noexcept;
    PieceWorkspace(const PieceWorkspace&) = delete;
    PieceWorkspace& operator=(const PieceWorkspace&) = delete;

    /// Returns the size of the largest piece in bytes.
    std::size_t piece_bytes() const noexcept { return planes_.size(); }
    /// Returns the room for the planes of a piece.
    std::span<std::byte> planes() const noexcept { return planes_; }
    void* lz4_state() const noexcept { return lz4_state_; }
    ZSTD_CCtx_s* compressor() const noexcept { return compressor_; }
    ZSTD_DCtx_s* decompressor() const noexcept { return decompressor_; }

private:
    std::span<std::byte> planes_;
    void* lz4_state_ = nullptr;
    ZSTD_CCtx_s* compressor_ = nullptr;
    ZSTD_DCtx_s* decompressor_ = nullptr;
};

}  // namespace tensorpool::stashing
