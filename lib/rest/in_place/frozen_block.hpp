#pragma once

#include <boost/intrusive/set.hpp>

#include "limits/commit_budget.hpp"
#include "platform/memory/page_faults.hpp"
#include "rest/pieces/piece_codec.hpp"
#include "rest/stash_group.hpp"

namespace tensorpool::kinds {
struct PoolParts;
}

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

using platform::FaultSource;
using platform::Writable;

inline std::uint32_t pieces_in(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>((bytes + PieceTools::piece_bytes - 1) /
                                      PieceTools::piece_bytes);
}

inline std::uint32_t pieces_to_keep(std::size_t window_bytes, std::uint32_t pieces) noexcept {
    const std::size_t window = window_bytes / PieceTools::piece_bytes;
    return window >= pieces ? pieces : static_cast<std::uint32_t>(window - 1);
}

inline std::size_t room_for_encoding() noexcept {
    return platform::whole_pages(max_encoded_bytes(PieceTools::piece_bytes));
}

// The record, its pieces and its window lie one after another.
template <class Record, class Piece>
std::size_t record_bytes(std::uint32_t pieces) noexcept {
    return platform::whole_pages(sizeof(Record) + pieces * (sizeof(Piece) + sizeof(std::uint32_t)));
}

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
    static FrozenBlock* make(const Settings& settings) noexcept {
        const std::uint32_t count = pieces_in(settings.range.bytes);
        const std::size_t record_size = record_bytes<FrozenBlock, Piece>(count);
        auto* const memory =
            static_cast<std::byte*>(platform::map(record_size, platform::page_bytes()));
        if (memory == nullptr) return nullptr;
        auto* const encodings = static_cast<std::byte*>(
            platform::map(count * room_for_encoding(), platform::page_bytes()));
        if (encodings == nullptr) {
            platform::unmap(memory, record_size);
            return nullptr;
        }
        // After mlockall(MCL_FUTURE) they have their pages already.
        (void)platform::decommit(encodings, count * room_for_encoding());
        // A huge page would hold memory for encodings that are smaller than their room.
        (void)platform::prefer_small_pages(encodings, count * room_for_encoding());
        auto* const block = new (memory) FrozenBlock(settings);
        block->pieces_ = reinterpret_cast<Piece*>(memory + sizeof(FrozenBlock));
        std::uninitialized_default_construct_n(block->pieces_, count);
        block->window_.place_in(reinterpret_cast<std::uint32_t*>(block->pieces_ + count), count);
        block->encodings_ = encodings;
        return block;
    }
    static void destroy(FrozenBlock& block) noexcept {
        const std::uint32_t count = block.piece_count_;
        platform::unmap(block.encodings_, count * room_for_encoding());
        block.~FrozenBlock();
        platform::unmap(&block, record_bytes<FrozenBlock, Piece>(count));
    }

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
    Done put_to_rest(std::uint32_t number, const FaultSource& source, PieceTools& tools) noexcept {
        const std::uint64_t begin = platform::monotonic_clock_ns();
        Piece& piece = pieces_[number];
        std::byte* const address = address_of(number);
        const std::size_t bytes = bytes_of(number);
        if (piece.state == State::dirty) {
            if (!platform::protect_from_writes(source, address, bytes, Writable::no)) {
                return Done::refused;
            }
            store(number, tools.encode({address, bytes}, type_));
            piece.state = State::clean;
        }
        const bool is_dropped = platform::decommit(address, bytes);
        piece.state = State::at_rest;
        resident_bytes_ -= bytes;
        totals().memory_bytes -= bytes;
        totals().stashed_bytes += bytes;
        if (!is_dropped) {
            // Some of its pages may be gone. Those that stay are protected, and as encoded, so the
            // piece may rest as it is if this fails.
            (void)fill(number, Writable::no, source, tools);
            return Done::refused;
        }
        totals().stash_ns += platform::monotonic_clock_ns() - begin;
        return Done::yes;
    }
    /// Serves a fault of a piece: decodes it if it is at rest, after `make_room`. Lets all threads
    /// that wait for the piece go on.
    Done serve(std::uint32_t number, bool is_write, const FaultSource& source,
               PieceTools& tools) noexcept {
        Piece& piece = pieces_[number];
        if (piece.state == State::at_rest) {
            ++faults_;
            ++totals().misses;
            make_room(source, tools);
            const Done done = fill(number, is_write ? Writable::yes : Writable::no, source, tools);
            if (done == Done::yes) window_.push(number);
            return done;
        }
        if (!is_write) {
            // Another thread's fault has brought the piece back already.
            platform::wake_faults(source, address_of(number), bytes_of(number));
            return Done::yes;
        }
        const bool is_open = platform::protect_from_writes(source, address_of(number),
                                                           bytes_of(number), Writable::yes);
        if (!is_open) return Done::refused;
        piece.state = State::dirty;
        return Done::yes;
    }
    /// Puts the oldest pieces that came back to rest until the window has room for one more. Called
    /// ahead of the next fault, so that it does not wait for an encoding.
    // A piece that the system does not drop goes to the end of the queue and is tried again later.
    void make_room(const FaultSource& source, PieceTools& tools) noexcept {
        if (is_thawing_) return;
        while (window_.count() > kept_pieces_) {
            const std::uint32_t oldest = window_.pop_oldest();
            const bool is_written = pieces_[oldest].state == State::dirty;
            if (put_to_rest(oldest, source, tools) != Done::yes) {
                window_.push(oldest);
                return;
            }
            if (is_written) ++encoded_again_;
        }
    }
    /// Brings a piece back for good.
    Done bring_back(std::uint32_t number, const FaultSource& source, PieceTools& tools) noexcept {
        if (pieces_[number].state != State::at_rest) return Done::yes;
        return fill(number, Writable::yes, source, tools);
    }
    /// Brings a piece back that is not watched.
    Done bring_back_unwatched(std::uint32_t number, PieceTools& tools) noexcept {
        if (pieces_[number].state != State::at_rest) return Done::yes;
        const std::span<const std::byte> decoded = tools.decode(encoding(number), bytes_of(number));
        if (decoded.empty()) return Done::damaged;
        std::memcpy(address_of(number), decoded.data(), decoded.size());
        become_resident(number, State::dirty);
        return Done::yes;
    }
    /// From now on, pieces that came back stay.
    void begin_thaw() noexcept {
        is_thawing_ = true;
        limits::commit_budget().let_in(std::exchange(kept_out_bytes_, 0));
    }
    /// Whether a thread freezes or thaws the block, so that no other thread may thaw it.
    bool is_in_use() const noexcept { return is_in_use_; }
    void set_in_use(bool in_use) noexcept { is_in_use_ = in_use; }
    /// The block is frozen, or remains so: the window holds again, and the process may commit the
    /// memory that it leaves free.
    // One piece more than what stays is resident while a fault is served.
    void end_use() noexcept {
        is_in_use_ = false;
        if (std::exchange(is_thawing_, false)) refill_window();
        if (kept_out_bytes_ != 0) return;
        kept_out_bytes_ = range_.bytes - std::min(range_.bytes, (kept_pieces_ + std::size_t{1}) *
                                                                    PieceTools::piece_bytes);
        limits::commit_budget().keep_out(kept_out_bytes_);
    }
    /// Like `end_use`, in the child of a fork, whose pages have no protection: all resident pieces
    /// count as written.
    void begin_anew() noexcept {
        for (std::uint32_t piece = 0; piece != piece_count_; ++piece) {
            if (pieces_[piece].state != State::at_rest) pieces_[piece].state = State::dirty;
        }
        refill_window();
        is_thawing_ = false;
        end_use();
    }

    std::size_t bytes_at_rest() const noexcept { return bytes_at_rest_; }
    std::size_t resident_bytes() const noexcept { return resident_bytes_; }
    std::uint64_t faults() const noexcept { return faults_; }
    std::uint64_t encoded_again() const noexcept { return encoded_again_; }
    /// The statistics of its name.
    statistics::StashTotals& totals() const noexcept { return group_.totals(); }

    /// Returns the stored encoding of a piece at rest, for tests that damage it.
    std::span<std::byte> encoding(std::uint32_t number) noexcept {
        Piece& piece = pieces_[number];
        if (piece.encoded_bytes <= small_bytes) return {piece.small, piece.encoded_bytes};
        return {encodings_ + number * room_for_encoding(), piece.encoded_bytes};
    }

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

    explicit FrozenBlock(const Settings& settings) noexcept
        : pool_(settings.pool),
          block_(settings.block),
          range_(settings.range),
          type_(settings.type),
          piece_count_(pieces_in(settings.range.bytes)),
          kept_pieces_(pieces_to_keep(settings.window_bytes, piece_count_)),
          resident_bytes_(settings.range.bytes),
          group_(StashStatistics::Kind::frozen, *settings.name == '\0' ? "unnamed" : settings.name,
                 settings.budget) {
        base::FixedText(name_, sizeof(name_)).add("%s", settings.name);
        ++totals().tensors;
        totals().memory_bytes += resident_bytes_;
    }
    ~FrozenBlock() {
        begin_thaw();
        --totals().tensors;
        totals().memory_bytes -= resident_bytes_;
        totals().stashed_bytes -= range_.bytes - resident_bytes_;
        totals().compressed_bytes -= bytes_at_rest_;
    }

    std::byte* address_of(std::uint32_t piece) const noexcept {
        return range_.begin + std::size_t{piece} * PieceTools::piece_bytes;
    }
    std::size_t bytes_of(std::uint32_t piece) const noexcept {
        return std::min(PieceTools::piece_bytes,
                        range_.bytes - std::size_t{piece} * PieceTools::piece_bytes);
    }
    // Pages behind the new encoding that the old one used go back to the system.
    void store(std::uint32_t number, std::span<const std::byte> encoding) noexcept {
        Piece& piece = pieces_[number];
        const auto pages_for = [](std::size_t bytes) {
            return bytes <= small_bytes ? 0 : platform::whole_pages(bytes);
        };
        const std::size_t before = pages_for(piece.encoded_bytes);
        const std::size_t now = pages_for(encoding.size());
        piece.encoded_bytes = static_cast<std::uint32_t>(encoding.size());
        std::memcpy(this->encoding(number).data(), encoding.data(), encoding.size());
        std::byte* const room = encodings_ + number * room_for_encoding();
        // Pages that the system keeps are used by a later encoding.
        if (before > now) (void)platform::decommit(room + now, before - now);
        bytes_at_rest_ += now - before;
        totals().compressed_bytes += now - before;
    }
    Done fill(std::uint32_t number, Writable writable, const FaultSource& source,
              PieceTools& tools) noexcept {
        const std::uint64_t begin = platform::monotonic_clock_ns();
        const std::size_t bytes = bytes_of(number);
        const std::span<const std::byte> decoded = tools.decode(encoding(number), bytes);
        if (decoded.empty()) return Done::damaged;
        Piece& piece = pieces_[number];
        piece.is_partly_written |= writable == Writable::yes;
        if (!platform::fill_missing(source, address_of(number), decoded.data(), bytes, writable)) {
            return Done::refused;
        }
        become_resident(
            number, std::exchange(piece.is_partly_written, false) ? State::dirty : State::clean);
        totals().restore_ns += platform::monotonic_clock_ns() - begin;
        return Done::yes;
    }
    void become_resident(std::uint32_t number, State state) noexcept {
        pieces_[number].state = state;
        const std::size_t bytes = bytes_of(number);
        resident_bytes_ += bytes;
        totals().memory_bytes += bytes;
        totals().stashed_bytes -= bytes;
    }
    void refill_window() noexcept {
        window_.clear();
        for (std::uint32_t piece = 0; piece != piece_count_; ++piece) {
            if (pieces_[piece].state != State::at_rest) window_.push(piece);
        }
    }

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
inline std::string block_message(const char* call, const char* name, const void* block) {
    char address[24];
    std::snprintf(address, sizeof(address), "%p", block);
    std::string text = std::string("tensorpool: ") + call + ": ";
    if (*name != '\0') text += std::string("'") + name + "', ";
    return text + "block " + address + ": ";
}

/// Returns that the system refused to freeze a block. `is_whole`: it is as before; otherwise it
/// stays frozen.
inline std::string refused_message(const FrozenBlock::Settings& settings, bool is_whole) {
    return block_message("freeze", settings.name, settings.block) +
           "the system refused to watch or to drop its pages; a frozen block takes up to four of "
           "the mappings that vm.max_map_count allows" +
           (is_whole ? ""
                     : "; it stays frozen, because the system provides no memory for what rests "
                       "already");
}

/// Returns what an attempt to bring a piece back found.
inline const char* reason_of(Done done) noexcept {
    return done == Done::damaged ? "its encoding was overwritten; expected the stored checksum"
                                 : "the system provides no memory for it";
}

inline std::string thaw_message(const FrozenBlock& block, std::uint32_t piece, Done done) {
    return block_message("thaw", block.name(), block.block()) + "piece " + std::to_string(piece) +
           " of " + std::to_string(block.piece_count()) + " cannot come back: " + reason_of(done);
}

}  // namespace tensorpool::stashing
