#pragma once

#include <boost/intrusive/set.hpp>

#include "platform/memory/page_faults.hpp"
#include "rest/pieces/piece_codec.hpp"
#include "rest/stash_group.hpp"

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

namespace tensorpool::kinds {

struct PoolParts;

}  // namespace tensorpool::kinds

namespace tensorpool::stashing {

/// The whole pages of a block that are frozen.
struct FrozenRange {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
};

/// What a function of a frozen block did.
enum class Done : std::uint8_t {
    yes,
    refused,  ///< the system refused
    damaged,  ///< the encoding of the piece is damaged
};

/// A queue of numbers of pieces, in memory of its user.
class PieceRing {
public:
    void place_in(std::uint32_t* memory, std::uint32_t capacity) noexcept {
        memory_ = memory;
        capacity_ = capacity;
    }
    std::uint32_t count() const noexcept { return count_; }
    void clear() noexcept { count_ = 0; }
    void push(std::uint32_t piece) noexcept { memory_[(first_ + count_++) % capacity_] = piece; }
    std::uint32_t pop_oldest() noexcept {
        const std::uint32_t oldest = memory_[first_];
        first_ = (first_ + 1) % capacity_;
        --count_;
        return oldest;
    }

private:
    std::uint32_t* memory_ = nullptr;
    std::uint32_t capacity_ = 0;
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
};

/// The pieces of a block that is frozen in place. Each is either at rest, as an encoding, or
/// resident; of the resident ones, those that were not written since they came back are clean and
/// protected from writes.
///
/// The record and the encodings lie in memory mapped from the system, with room for all pieces at
/// any time, so a handler of faults allocates nothing. Not thread-safe: the lock of the freezer
/// guards it.
class FrozenBlock : public boost::intrusive::set_base_hook<> {
public:
    struct Settings {
        kinds::PoolParts* pool = nullptr;
        const void* block = nullptr;  // where the block begins; the range may begin later
        FrozenRange range;
        DataType type;
        std::size_t window_bytes = 0;
        std::uint64_t budget = 0;  // the number of the one that is charged for the block
        const char* name = "";     // for messages and statistics; cut off if it is long
    };
    /// Makes the record of a block whose pieces are all resident. Returns nullptr if the system has
    /// no memory for it.
    static FrozenBlock* make(const Settings& settings) noexcept;
    static void destroy(FrozenBlock& block) noexcept;

    kinds::PoolParts* pool() const noexcept { return pool_; }
    const void* block() const noexcept { return block_; }
    const FrozenRange& range() const noexcept { return range_; }
    const char* name() const noexcept { return name_; }
    std::uint32_t piece_count() const noexcept { return piece_count_; }
    std::uint32_t piece_of(const void* address) const noexcept {
        return static_cast<std::uint32_t>(
            static_cast<std::size_t>(static_cast<const std::byte*>(address) - range_.begin) /
            PieceTools::piece_bytes);
    }

    /// Encodes a piece and drops its pages. Writes that come meanwhile wait, and then meet a
    /// missing page. On failure, the piece stays resident. REQUIRES: all of it is present.
    Done put_to_rest(std::uint32_t piece, const platform::FaultSource& source,
                     PieceTools& tools) noexcept;
    /// Serves a fault of a piece: decodes it if it is at rest, after `make_room`. Lets all threads
    /// that wait for the piece go on.
    Done serve(std::uint32_t piece, bool is_write, const platform::FaultSource& source,
               PieceTools& tools) noexcept;
    /// Puts the oldest pieces that came back to rest until the window has room for one more. Called
    /// ahead of the next fault, so that it does not wait for an encoding.
    void make_room(const platform::FaultSource& source, PieceTools& tools) noexcept;
    /// Brings a piece back for good.
    Done bring_back(std::uint32_t piece, const platform::FaultSource& source,
                    PieceTools& tools) noexcept;
    /// Brings a piece back that is not watched.
    Done bring_back_unwatched(std::uint32_t piece, PieceTools& tools) noexcept;
    /// From now on, pieces that came back stay.
    void begin_thaw() noexcept;
    /// Whether a thread freezes or thaws the block, so that no other thread may thaw it.
    bool is_in_use() const noexcept { return is_in_use_; }
    void set_in_use(bool in_use) noexcept { is_in_use_ = in_use; }
    /// The block is frozen, or remains so: the window holds again, and the process may commit the
    /// memory that it leaves free.
    void end_use() noexcept;
    /// Like `end_use`, in the child of a fork, whose pages have no protection: all resident pieces
    /// count as written.
    void begin_anew() noexcept;

    std::size_t bytes_at_rest() const noexcept { return bytes_at_rest_; }
    std::size_t resident_bytes() const noexcept { return resident_bytes_; }
    std::uint64_t faults() const noexcept { return faults_; }
    std::uint64_t encoded_again() const noexcept { return encoded_again_; }
    /// The statistics of its name.
    statistics::StashTotals& totals() const noexcept { return group_.totals(); }

    /// Returns the stored encoding of a piece at rest, for tests that damage it.
    std::span<std::byte> encoding(std::uint32_t piece) noexcept;

private:
    enum class State : std::uint8_t { at_rest, clean, dirty };
    // Constant pieces of any element type fit in here, and take no pages.
    static constexpr std::size_t small_bytes = 64;
    struct Piece {
        State state = State::dirty;
        // It was written while it came back in parts: it is not what its encoding says.
        bool is_partly_written = false;
        std::uint32_t encoded_bytes = 0;
        std::byte small[small_bytes];
    };

    explicit FrozenBlock(const Settings& settings) noexcept;
    ~FrozenBlock();

    std::byte* address_of(std::uint32_t piece) const noexcept {
        return range_.begin + std::size_t{piece} * PieceTools::piece_bytes;
    }
    std::size_t bytes_of(std::uint32_t piece) const noexcept;
    void store(std::uint32_t piece, std::span<const std::byte> encoding) noexcept;
    Done fill(std::uint32_t piece, platform::Writable writable, const platform::FaultSource& source,
              PieceTools& tools) noexcept;
    void become_resident(std::uint32_t piece, State state) noexcept;
    void refill_window() noexcept;

    kinds::PoolParts* const pool_;
    const void* const block_;
    const FrozenRange range_;
    const DataType type_;
    const std::uint32_t piece_count_;
    // The pieces that stay after a fault was served: one less than the window, so that the next one
    // fits, or all if the window holds all.
    const std::uint32_t kept_pieces_;
    bool is_thawing_ = false;
    std::size_t kept_out_bytes_ = 0;  // of the commit budget
    bool is_in_use_ = false;
    Piece* pieces_ = nullptr;
    PieceRing window_;  // the pieces that came back, with room for all
    // Room for the largest encoding of each piece. Pages without a part of one take no memory.
    std::byte* encodings_ = nullptr;
    std::size_t bytes_at_rest_ = 0;
    std::size_t resident_bytes_ = 0;
    std::uint64_t faults_ = 0;
    std::uint64_t encoded_again_ = 0;
    char name_[48] = {};
    const StashGroup group_;
};

/// Returns the beginning of a message about a block: the call, the block's name, if it has one, and
/// its address.
std::string block_message(const char* call, const char* name, const void* block);
/// Returns that the system refused to freeze a block. `is_whole`: it is as before; otherwise it
/// stays frozen.
std::string refused_message(const FrozenBlock::Settings& settings, bool is_whole);
/// Returns why `thaw` failed.
std::string thaw_message(const FrozenBlock& block, std::uint32_t piece, Done done);
/// Returns what an attempt to bring a piece back found.
const char* reason_of(Done done) noexcept;

}  // namespace tensorpool::stashing
