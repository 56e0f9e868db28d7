#pragma once

#include <cstddef>
#include <span>

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
