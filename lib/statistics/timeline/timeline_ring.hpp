#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.hpp"
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

inline void store_words(EntryRecord& record, const EntryWords& words,
                        std::memory_order order) noexcept {
    record.time_ns.store(words.time_ns, order);
    record.thread.store(words.thread, order);
    record.what.store(words.what, order);
    record.bytes.store(words.bytes, order);
    for (std::size_t i = 0; i < words.name.size(); ++i) record.name[i].store(words.name[i], order);
}

/// Writes one entry. Returns false if the entry was given up. A signal handler may interrupt it and
/// write another entry.
inline bool write_words(std::span<EntryRecord> ring, Counter& head,
                        const EntryWords& words) noexcept {
    // Relaxed: the tickets show which entries are written.
    const std::uint64_t number = head.fetch_add(1, std::memory_order_relaxed) + 1;
    EntryRecord& record = ring[place_of(number, ring.size())];
    std::uint64_t ticket = record.ticket.load(std::memory_order_relaxed);
    do {
        if (!may_claim(ticket, number)) return false;
        // Acquire pairs with the last store below: the previous writer's words come before ours.
    } while (!record.ticket.compare_exchange_weak(
        ticket, busy_ticket(number), std::memory_order_acquire, std::memory_order_relaxed));
    store_words(record, words, std::memory_order_release);
    record.ticket.store(whole_ticket(number), std::memory_order_release);
    return true;
}

inline EntryWords load_words(const EntryRecord& record) noexcept {
    EntryWords words;
    words.time_ns = record.time_ns.load(std::memory_order_acquire);
    words.thread = record.thread.load(std::memory_order_acquire);
    words.what = record.what.load(std::memory_order_acquire);
    words.bytes = record.bytes.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < words.name.size(); ++i) {
        words.name[i] = record.name[i].load(std::memory_order_acquire);
    }
    return words;
}

/// Copies entry `number` if it is complete.
inline EntryState read_words(std::span<const EntryRecord> ring, std::uint64_t number,
                             EntryWords& to) noexcept {
    const EntryRecord& record = ring[place_of(number, ring.size())];
    const std::uint64_t ticket = record.ticket.load(std::memory_order_acquire);
    const EntryState look = look_of(ticket, number);
    if (look != EntryState::whole) return look;
    to = load_words(record);
    return record.ticket.load(std::memory_order_relaxed) == ticket ? EntryState::whole
                                                                   : EntryState::lost;
}

/// When a segment was created, by both clocks.
struct SegmentTimes {
    std::uint64_t made_ns = 0;
    std::uint64_t made_unix_ns = 0;
};

inline std::string unpack(const std::array<std::uint64_t, 3>& words) {
    char text[sizeof words];
    std::memcpy(text, words.data(), sizeof text);
    return {text, std::find(text, text + sizeof text - 1, '\0')};
}

inline TimelineEntry entry_of(std::uint64_t number, const EntryWords& words, SegmentTimes times) {
    const auto kind = static_cast<std::uint8_t>(words.what & 0xFF);
    const auto limit = static_cast<std::uint8_t>(words.what >> 8 & 0xFF);
    TimelineEntry entry;
    entry.number = number;
    entry.time_ns = times.made_unix_ns + (words.time_ns - times.made_ns);
    entry.thread = words.thread;
    // Another process may have written anything.
    entry.kind = kind < entry_kind_count ? EntryKind{kind} : EntryKind{};
    entry.limit = limit < limit_kind_count ? LimitKind{limit} : LimitKind::none;
    entry.bytes = words.bytes;
    entry.name = unpack(words.name);
    return entry;
}

// How often a reader looks at an entry that is being written: as long as a writer on another core
// takes. The reader does not wait for a writer that was descheduled.
inline constexpr unsigned max_looks = 64;

inline EntryState read_patiently(std::span<const EntryRecord> ring, std::uint64_t number,
                                 EntryWords& to) noexcept {
    EntryState look = EntryState::under_way;
    for (unsigned i = 0; i < max_looks && look == EntryState::under_way; ++i) {
        look = read_words(ring, number, to);
    }
    return look;
}

/// Returns the entries after number `since`; `head` is the number of entries ever written. The ring
/// is one of this process or one that is mapped from another. (A copy made by `pread` may contain
/// mixtures that no ticket reveals.) Entries at the very end that are still being written are left
/// for the next call. Incomplete entries before a complete one count as lost. Whatever the ring
/// contains, the function returns valid entries and reads each position at most once. Throws
/// std::bad_alloc.
inline TimelinePart read_entries(std::span<const EntryRecord> ring, std::uint64_t head,
                                 SegmentTimes times, std::uint64_t since) {
    TimelinePart part;
    part.last = std::min(since, head);
    const std::uint64_t kept = std::min<std::uint64_t>(head - part.last, ring.size());
    part.entries.reserve(static_cast<std::size_t>(kept));
    for (std::uint64_t i = 0; i < kept; ++i) {
        const std::uint64_t number = head - kept + 1 + i;
        EntryWords words;
        const EntryState look = read_patiently(ring, number, words);
        if (look == EntryState::under_way) continue;
        if (look == EntryState::whole) part.entries.push_back(entry_of(number, words, times));
        part.last = number;
    }
    part.lost = part.last - std::min(since, head) - part.entries.size();
    return part;
}

/// Copies a ring that other threads still write, up to entry `head`, for the child of a fork.
/// Incomplete and later entries are left out. Otherwise a position in the child would wait for a
/// writer that does not exist there, or would look newer than the child's own entries.
inline void copy_entries(std::span<const EntryRecord> from, std::span<EntryRecord> to,
                         std::uint64_t head) noexcept {
    for (std::size_t index = 0; index < from.size(); ++index) {
        const std::uint64_t number = from[index].ticket.load(std::memory_order_relaxed) / 2;
        EntryWords words;
        const bool whole = number != 0 && number <= head &&
                           place_of(number, from.size()) == index &&
                           read_words(from, number, words) == EntryState::whole;
        store_words(to[index], whole ? words : EntryWords{}, std::memory_order_relaxed);
        to[index].ticket.store(whole ? whole_ticket(number) : 0, std::memory_order_release);
    }
}

/// Returns the first 23 bytes of the name, cut before a UTF-8 character that does not fit as a
/// whole.
inline std::array<std::uint64_t, 3> pack_entry_name(std::string_view name) noexcept {
    std::array<std::uint64_t, 3> words = {};
    name = base::cut_utf8(name, sizeof words - 1);
    std::memcpy(words.data(), name.data(), name.size());
    return words;
}

}  // namespace tensorpool::statistics
