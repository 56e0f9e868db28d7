#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "platform/platform.hpp"
#include "platform/whole_pages.hpp"
#include "rest/pieces/piece_codec.hpp"

namespace tensorpool::stashing {

/// Copies whole pages that the program may write until the system protects them. Its threads wait
/// in page faults, which ThreadSanitizer does not see, so it would report each access to them here.
/// Nor does it see these; volatile, since it would see a call of memcpy.
[[gnu::no_sanitize("thread")]] inline void copy_watched(std::span<const std::byte> pages,
                                                        std::byte* to) noexcept {
    const auto* const words = reinterpret_cast<const volatile std::uint64_t*>(pages.data());
    auto* const copies = reinterpret_cast<volatile std::uint64_t*>(to);
    for (std::size_t i = 0; i != pages.size() / sizeof(*words); ++i) copies[i] = words[i];
}

/// What encoding and decoding pieces of frozen blocks takes: a workspace, and room for one piece in
/// either form. All of it is memory mapped from the system. One thread at a time may use it.
class PieceTools {
public:
    static constexpr std::size_t piece_bytes = default_piece_bytes;

    /// Maps the memory. Returns false if the system has none.
    [[nodiscard]] bool set_up() noexcept {
        const std::size_t piece = platform::whole_pages(piece_bytes);
        const std::size_t encoded = platform::whole_pages(max_encoded_bytes(piece_bytes));
        const std::size_t bytes = piece + encoded + PieceWorkspace::bytes_for(piece_bytes);
        auto* const memory = static_cast<std::byte*>(
            platform::map(platform::whole_pages(bytes), platform::page_bytes()));
        if (memory == nullptr) return false;
        encoded_ = memory + piece;
        workspace_.emplace(std::span(encoded_ + encoded, bytes - piece - encoded), piece_bytes);
        piece_ = memory;
        return true;
    }
    bool is_set_up() const noexcept { return piece_ != nullptr; }

    /// Returns the encoding of a piece of whole pages, which stays until the next call. Encodes a
    /// copy of the piece, which is read once.
    std::span<const std::byte> encode(std::span<const std::byte> piece,
                                      const DataType& type) noexcept {
        copy_watched(piece, piece_);
        const std::span room(encoded_, max_encoded_bytes(piece_bytes));
        return room.first(encode_piece({piece_, piece.size()}, type, room, *workspace_));
    }
    /// Returns the decoded piece of `bytes` bytes, which begins at a page and stays until the next
    /// call; nothing if the encoding is damaged.
    std::span<const std::byte> decode(std::span<const std::byte> encoded,
                                      std::size_t bytes) noexcept {
        const std::span room(piece_, bytes);
        return decode_piece(encoded, room, *workspace_) ? room : std::span<std::byte>();
    }

private:
    std::byte* piece_ = nullptr;
    std::byte* encoded_ = nullptr;
    std::optional<PieceWorkspace> workspace_;
};

}  // namespace tensorpool::stashing
