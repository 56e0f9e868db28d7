#include "statistics/timeline/timeline.hpp"

#include "platform/platform.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/timeline/timeline_ring.hpp"

namespace tensorpool {

void statistics::write_entry(EntryKind kind, LimitKind limit, std::uint64_t bytes,
                             std::string_view name) noexcept {
    SegmentHeader* const header = segment().header();
    if (header == nullptr || !segment().has_page_of_next_entry()) return;
    EntryWords words;
    words.time_ns = platform::monotonic_clock_ns();
    words.thread = platform::current_thread_id();
    words.what = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(limit) << 8;
    words.bytes = bytes;
    words.name = pack_entry_name(name);
    (void)write_words({segment().timeline(), entry_count}, header->entries, words);
}

void mark_timeline(std::string_view text, std::uint64_t bytes) noexcept {
    statistics::write_entry(EntryKind::mark, LimitKind::none, bytes, text);
}

TimelinePart timeline_since(std::uint64_t number) {
    using namespace statistics;
    const SegmentHeader* const header = segment().header();
    if (header == nullptr) return {};
    const SegmentTimes times = {
        .made_ns = header->made_ns.load(std::memory_order_relaxed),
        .made_unix_ns = header->made_unix_ns.load(std::memory_order_relaxed)};
    // Relaxed: the tickets show which entries are written.
    const std::uint64_t head = header->entries.load(std::memory_order_relaxed);
    return read_entries({segment().timeline(), entry_count}, head, times, number);
}

}  // namespace tensorpool
