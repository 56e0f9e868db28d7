#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tensorpool/timeline.hpp>

#include "statistics/segment/segment_layout.hpp"

/// How entries are written into a ring of places and read from it, by any number of threads and
/// processes at once, without a lock. A model in tests/models/timeline_test.cpp goes through every
/// order of the steps of several writers and a reader.
///
/// A writer takes a number by one addition to the head, and with it a place. It claims the place by
/// exchanging its ticket for its own, odd one, writes, and stores the even one. Whoever finds a
/// ticket of a later entry slept through a turn of the ring, and whoever finds an odd one meets a
/// writer that sleeps in the middle: both give their entry up. So nobody waits, and the words
/// between two looks at the same even ticket are those of one entry.
///
/// A reader looks at the ticket, copies, and looks again. That needs no fences: words are stored
/// with release after the odd ticket and loaded with acquire before the second look, so who read a
/// later writer's word sees its ticket too. On x86-64 these are plain moves. (After the seqlocks of
/// Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012.)
namespace tensorpool::statistics {

/// What stands in an entry beside its ticket, as in EntryRecord.
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

/// Whether the writer of entry `number` may claim a place with this ticket: nobody writes there,
/// and what stands there is older.
constexpr bool may_claim(std::uint64_t ticket, std::uint64_t number) noexcept {
    return ticket % 2 == 0 && ticket < whole_ticket(number);
}

enum class Look { whole, under_way, lost };

/// What a reader that asks for entry `number` learns from a ticket. An older one's: its writer has
/// not come yet, or has given up.
constexpr Look look_of(std::uint64_t ticket, std::uint64_t number) noexcept {
    if (ticket == whole_ticket(number)) return Look::whole;
    return ticket <= busy_ticket(number) ? Look::under_way : Look::lost;
}

/// The place of entry `number`, counted from 1.
constexpr std::size_t place_of(std::uint64_t number, std::size_t places) noexcept {
    return static_cast<std::size_t>((number - 1) % places);
}

/// Writes one entry; false when it was given up. A signal handler may interrupt it by another.
bool write_words(std::span<EntryRecord> ring, Counter& head, const EntryWords& words) noexcept;

/// Copies entry `number`, if it is whole.
Look read_words(std::span<const EntryRecord> ring, std::uint64_t number, EntryWords& to) noexcept;

/// When a segment was made, by both clocks.
struct SegmentTimes {
    std::uint64_t made_ns = 0;
    std::uint64_t made_unix_ns = 0;
};

/// The entries after number `since`, `head` being how many there ever were, in a ring of this
/// process or one that is mapped from another (a copy made by `pread` may hold a mixture that no
/// ticket tells). What writers at the very end are just writing is left for the next time; what is
/// not whole and stands before one that is counts as lost. Whatever stands in the ring, each entry
/// is some entry, and no more than there are places are looked at. Throws std::bad_alloc.
TimelinePart read_entries(std::span<const EntryRecord> ring, std::uint64_t head, SegmentTimes times,
                          std::uint64_t since);

/// For the child of a fork: copies a ring that others still write to, up to entry `head`. What is
/// not whole or came later is left out: no place of the child's is to wait for a writer that it
/// does not have, or to look newer than its own entries.
void copy_entries(std::span<const EntryRecord> from, std::span<EntryRecord> to,
                  std::uint64_t head) noexcept;

/// The first 23 bytes, cut before a character of UTF-8 that does not fit whole.
std::array<std::uint64_t, 3> pack_entry_name(std::string_view name) noexcept;

}  // namespace tensorpool::statistics
