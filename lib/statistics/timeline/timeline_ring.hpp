#pragma once

#include <array>

#include "statistics/segment/segment_layout.hpp"

/// Writes and reads entries of a ring without a lock, with any number of threads and processes at
/// once. A model in tests/models/timeline_test.cpp explores every order of the steps of several
/// writers and a reader.
///
/// A writer gets a number, and with it a position, by adding one to the head. It claims the
/// position by exchanging the ticket there for its own odd one, writes the words, and stores the
/// even ticket. A writer that finds the ticket of a later entry was delayed for a whole pass
/// through the ring. A writer that finds an odd ticket meets another writer that was interrupted.
/// Both give up their entry. No writer therefore waits, and the words between two reads of the same
/// even ticket belong to one entry.
///
/// A reader reads the ticket, copies the words, and reads the ticket again. This needs no fences:
/// words are stored with release after the odd ticket and loaded with acquire before the second
/// read of the ticket. A reader that saw a later writer's word therefore also sees its ticket. On
/// x86-64 these are plain moves. (After the seqlocks of Boehm, "Can seqlocks get along with
/// programming language memory models?", MSPC 2012.)
namespace tensorpool::statistics {

/// The words of an entry except its ticket, as in EntryRecord.
struct EntryWords {
    std::uint64_t time_ns = 0;
    std::uint64_t thread = 0;
    std::uint64_t what = 0;
    std::uint64_t bytes = 0;
    std::array<std::uint64_t, 3> name = {};
};

constexpr std::uint64_t whole_ticket(std::uint64_t number) noexcept {
    return 2 * number;
}
constexpr std::uint64_t busy_ticket(std::uint64_t number) noexcept {
    return 2 * number + 1;
}

/// Returns whether the writer of entry `number` may claim a position with this ticket: no writer is
/// active there, and the entry in it is older.
constexpr bool may_claim(std::uint64_t ticket, std::uint64_t number) noexcept {
    return ticket % 2 == 0 && ticket < whole_ticket(number);
}

enum class EntryState { whole, under_way, lost };

/// Returns what a ticket means for a reader of entry `number`. With an older ticket, the writer of
/// the entry has not started yet or has given up.
constexpr EntryState look_of(std::uint64_t ticket, std::uint64_t number) noexcept {
    if (ticket == whole_ticket(number)) return EntryState::whole;
    return ticket <= busy_ticket(number) ? EntryState::under_way : EntryState::lost;
}

/// Returns the position of entry `number`, which is counted from 1.
constexpr std::size_t place_of(std::uint64_t number, std::size_t ring_size) noexcept {
    return static_cast<std::size_t>((number - 1) % ring_size);
}

/// Writes one entry. Returns false if the entry was given up. A signal handler may interrupt it and
/// write another entry.
bool write_words(std::span<EntryRecord> ring, Counter& head, const EntryWords& words) noexcept;

/// Copies entry `number` if it is complete.
EntryState read_words(std::span<const EntryRecord> ring, std::uint64_t number,
                      EntryWords& to) noexcept;

/// When a segment was created, by both clocks.
struct SegmentTimes {
    std::uint64_t made_ns = 0;
    std::uint64_t made_unix_ns = 0;
};

/// Returns the entries after number `since`; `head` is the number of entries ever written. The ring
/// is one of this process or one that is mapped from another. (A copy made by `pread` may contain
/// mixtures that no ticket reveals.) Entries at the very end that are still being written are left
/// for the next call. Incomplete entries before a complete one count as lost. Whatever the ring
/// contains, the function returns valid entries and reads each position at most once. Throws
/// std::bad_alloc.
TimelinePart read_entries(std::span<const EntryRecord> ring, std::uint64_t head, SegmentTimes times,
                          std::uint64_t since);

/// Copies a ring that other threads still write, up to entry `head`, for the child of a fork.
/// Incomplete and later entries are left out. Otherwise a position in the child would wait for a
/// writer that does not exist there, or would look newer than the child's own entries.
void copy_entries(std::span<const EntryRecord> from, std::span<EntryRecord> to,
                  std::uint64_t head) noexcept;

/// Returns the first 23 bytes of the name, cut before a UTF-8 character that does not fit as a
/// whole.
std::array<std::uint64_t, 3> pack_entry_name(std::string_view name) noexcept;

}  // namespace tensorpool::statistics
