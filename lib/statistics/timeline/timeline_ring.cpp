#include "statistics/timeline/timeline_ring.hpp"

#include <algorithm>
#include <cstring>

namespace tensorpool::statistics {
namespace {

// How often a reader looks at an entry that is being written: as long as a writer on another core
// takes. The reader does not wait for a writer that was descheduled.
constexpr unsigned max_looks = 64;

EntryState read_patiently(std::span<const EntryRecord> ring, std::uint64_t number,
                          EntryWords& to) noexcept {
    EntryState look = EntryState::under_way;
    for (unsigned i = 0; i < max_looks && look == EntryState::under_way; ++i) {
        look = read_words(ring, number, to);
    }
    return look;
}

std::string unpack(const std::array<std::uint64_t, 3>& words) {
    char text[sizeof words];
    std::memcpy(text, words.data(), sizeof text);
    return {text, std::find(text, text + sizeof text - 1, '\0')};
}

TimelineEntry entry_of(std::uint64_t number, const EntryWords& words, SegmentTimes times) {
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

void store_words(EntryRecord& record, const EntryWords& words, std::memory_order order) noexcept {
    record.time_ns.store(words.time_ns, order);
    record.thread.store(words.thread, order);
    record.what.store(words.what, order);
    record.bytes.store(words.bytes, order);
    for (std::size_t i = 0; i < words.name.size(); ++i) record.name[i].store(words.name[i], order);
}

EntryWords load_words(const EntryRecord& record) noexcept {
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

}  // namespace

bool write_words(std::span<EntryRecord> ring, Counter& head, const EntryWords& words) noexcept {
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

EntryState read_words(std::span<const EntryRecord> ring, std::uint64_t number,
                      EntryWords& to) noexcept {
    const EntryRecord& record = ring[place_of(number, ring.size())];
    const std::uint64_t ticket = record.ticket.load(std::memory_order_acquire);
    const EntryState look = look_of(ticket, number);
    if (look != EntryState::whole) return look;
    to = load_words(record);
    return record.ticket.load(std::memory_order_relaxed) == ticket ? EntryState::whole
                                                                   : EntryState::lost;
}

TimelinePart read_entries(std::span<const EntryRecord> ring, std::uint64_t head, SegmentTimes times,
                          std::uint64_t since) {
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

void copy_entries(std::span<const EntryRecord> from, std::span<EntryRecord> to,
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

std::array<std::uint64_t, 3> pack_entry_name(std::string_view name) noexcept {
    std::array<std::uint64_t, 3> words = {};
    std::size_t bytes = std::min(name.size(), sizeof words - 1);
    const auto continues = [&](std::size_t at) { return (name[at] & 0xC0) == 0x80; };
    while (bytes != 0 && bytes < name.size() && continues(bytes)) --bytes;
    std::memcpy(words.data(), name.data(), bytes);
    return words;
}

}  // namespace tensorpool::statistics
