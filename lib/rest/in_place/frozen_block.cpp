#include "rest/in_place/frozen_block.hpp"

#include <cstring>
#include <memory>

#include "base/text.hpp"
#include "limits/commit_budget.hpp"

namespace tensorpool::stashing {
namespace {

using platform::FaultSource;
using platform::Writable;

std::uint32_t pieces_in(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>((bytes + PieceTools::piece_bytes - 1) /
                                      PieceTools::piece_bytes);
}

std::uint32_t pieces_to_keep(std::size_t window_bytes, std::uint32_t pieces) noexcept {
    const std::size_t window = window_bytes / PieceTools::piece_bytes;
    return window >= pieces ? pieces : static_cast<std::uint32_t>(window - 1);
}

std::size_t room_for_encoding() noexcept {
    return platform::whole_pages(max_encoded_bytes(PieceTools::piece_bytes));
}

// The record, its pieces and its window lie one after another.
template <class Record, class Piece>
std::size_t record_bytes(std::uint32_t pieces) noexcept {
    return platform::whole_pages(sizeof(Record) + pieces * (sizeof(Piece) + sizeof(std::uint32_t)));
}

}  // namespace

FrozenBlock* FrozenBlock::make(const Settings& settings) noexcept {
    const std::uint32_t count = pieces_in(settings.range.bytes);
    const std::size_t record_size = record_bytes<FrozenBlock, Piece>(count);
    auto* const memory =
        static_cast<std::byte*>(platform::map(record_size, platform::page_bytes()));
    if (memory == nullptr) return nullptr;
    auto* const encodings =
        static_cast<std::byte*>(platform::map(count * room_for_encoding(), platform::page_bytes()));
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

void FrozenBlock::destroy(FrozenBlock& block) noexcept {
    const std::uint32_t count = block.piece_count_;
    platform::unmap(block.encodings_, count * room_for_encoding());
    block.~FrozenBlock();
    platform::unmap(&block, record_bytes<FrozenBlock, Piece>(count));
}

FrozenBlock::FrozenBlock(const Settings& settings) noexcept
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

FrozenBlock::~FrozenBlock() {
    begin_thaw();
    --totals().tensors;
    totals().memory_bytes -= resident_bytes_;
    totals().stashed_bytes -= range_.bytes - resident_bytes_;
    totals().compressed_bytes -= bytes_at_rest_;
}

std::size_t FrozenBlock::bytes_of(std::uint32_t piece) const noexcept {
    return std::min(PieceTools::piece_bytes,
                    range_.bytes - std::size_t{piece} * PieceTools::piece_bytes);
}

std::span<std::byte> FrozenBlock::encoding(std::uint32_t number) noexcept {
    Piece& piece = pieces_[number];
    if (piece.encoded_bytes <= small_bytes) return {piece.small, piece.encoded_bytes};
    return {encodings_ + number * room_for_encoding(), piece.encoded_bytes};
}

// Pages behind the new encoding that the old one used go back to the system.
void FrozenBlock::store(std::uint32_t number, std::span<const std::byte> encoding) noexcept {
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

Done FrozenBlock::put_to_rest(std::uint32_t number, const FaultSource& source,
                              PieceTools& tools) noexcept {
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

Done FrozenBlock::fill(std::uint32_t number, Writable writable, const FaultSource& source,
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
    become_resident(number,
                    std::exchange(piece.is_partly_written, false) ? State::dirty : State::clean);
    totals().restore_ns += platform::monotonic_clock_ns() - begin;
    return Done::yes;
}

void FrozenBlock::become_resident(std::uint32_t number, State state) noexcept {
    pieces_[number].state = state;
    const std::size_t bytes = bytes_of(number);
    resident_bytes_ += bytes;
    totals().memory_bytes += bytes;
    totals().stashed_bytes -= bytes;
}

Done FrozenBlock::serve(std::uint32_t number, bool is_write, const FaultSource& source,
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
    const bool is_open =
        platform::protect_from_writes(source, address_of(number), bytes_of(number), Writable::yes);
    if (!is_open) return Done::refused;
    piece.state = State::dirty;
    return Done::yes;
}

// A piece that the system does not drop goes to the end of the queue and is tried again later.
void FrozenBlock::make_room(const FaultSource& source, PieceTools& tools) noexcept {
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

void FrozenBlock::begin_thaw() noexcept {
    is_thawing_ = true;
    limits::commit_budget().let_in(std::exchange(kept_out_bytes_, 0));
}

Done FrozenBlock::bring_back(std::uint32_t number, const FaultSource& source,
                             PieceTools& tools) noexcept {
    if (pieces_[number].state != State::at_rest) return Done::yes;
    return fill(number, Writable::yes, source, tools);
}

Done FrozenBlock::bring_back_unwatched(std::uint32_t number, PieceTools& tools) noexcept {
    if (pieces_[number].state != State::at_rest) return Done::yes;
    const std::span<const std::byte> decoded = tools.decode(encoding(number), bytes_of(number));
    if (decoded.empty()) return Done::damaged;
    std::memcpy(address_of(number), decoded.data(), decoded.size());
    become_resident(number, State::dirty);
    return Done::yes;
}

// One piece more than what stays is resident while a fault is served.
void FrozenBlock::end_use() noexcept {
    is_in_use_ = false;
    if (std::exchange(is_thawing_, false)) refill_window();
    if (kept_out_bytes_ != 0) return;
    kept_out_bytes_ = range_.bytes - std::min(range_.bytes, (kept_pieces_ + std::size_t{1}) *
                                                                PieceTools::piece_bytes);
    limits::commit_budget().keep_out(kept_out_bytes_);
}

void FrozenBlock::begin_anew() noexcept {
    for (std::uint32_t piece = 0; piece != piece_count_; ++piece) {
        if (pieces_[piece].state != State::at_rest) pieces_[piece].state = State::dirty;
    }
    refill_window();
    is_thawing_ = false;
    end_use();
}

void FrozenBlock::refill_window() noexcept {
    window_.clear();
    for (std::uint32_t piece = 0; piece != piece_count_; ++piece) {
        if (pieces_[piece].state != State::at_rest) window_.push(piece);
    }
}

std::string block_message(const char* call, const char* name, const void* block) {
    char address[24];
    std::snprintf(address, sizeof(address), "%p", block);
    std::string text = std::string("tensorpool: ") + call + ": ";
    if (*name != '\0') text += std::string("'") + name + "', ";
    return text + "block " + address + ": ";
}

std::string refused_message(const FrozenBlock::Settings& settings, bool is_whole) {
    return block_message("freeze", settings.name, settings.block) +
           "the system refused to watch or to drop its pages; a frozen block takes up to four of "
           "the mappings that vm.max_map_count allows" +
           (is_whole ? ""
                     : "; it stays frozen, because the system provides no memory for what rests "
                       "already");
}

std::string thaw_message(const FrozenBlock& block, std::uint32_t piece, Done done) {
    return block_message("thaw", block.name(), block.block()) + "piece " + std::to_string(piece) +
           " of " + std::to_string(block.piece_count()) + " cannot come back: " + reason_of(done);
}

const char* reason_of(Done done) noexcept {
    return done == Done::damaged ? "its encoding was overwritten; expected the stored checksum"
                                 : "the system provides no memory for it";
}

}  // namespace tensorpool::stashing
