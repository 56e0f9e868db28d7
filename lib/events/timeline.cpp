#include "events/timeline.hpp"

#include "statistics/segment/segment.hpp"
#include "statistics/timeline/timeline_ring.hpp"

namespace tensorpool {

void events::write_entry(EntryKind kind, LimitKind limit, std::uint64_t bytes,
                         std::string_view name) noexcept {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr || !statistics::segment().has_page_of_next_entry()) return;
    statistics::EntryWords words;
    words.time_ns = platform::monotonic_clock_ns();
    words.thread = platform::current_thread_id();
    words.what = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(limit) << 8;
    words.bytes = bytes;
    words.name = statistics::pack_entry_name(name);
    (void)statistics::write_words({statistics::segment().timeline(), statistics::entry_count},
                                  header->entries, words);
}

void mark_timeline(std::string_view text, std::uint64_t bytes) noexcept {
    events::write_entry(EntryKind::mark, LimitKind::none, bytes, text);
}

TimelinePart timeline_since(std::uint64_t number) {
    const statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return {};
    const statistics::SegmentTimes times = {
        .made_ns = header->made_ns.load(std::memory_order_relaxed),
        .made_unix_ns = header->made_unix_ns.load(std::memory_order_relaxed)};
    // Relaxed: the tickets show which entries are written.
    const std::uint64_t head = header->entries.load(std::memory_order_relaxed);
    return statistics::read_entries({statistics::segment().timeline(), statistics::entry_count},
                                    head, times, number);
}

}  // namespace tensorpool
