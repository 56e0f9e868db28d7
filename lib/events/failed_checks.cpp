#include "events/failed_checks.hpp"

#include "events/timeline.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::events {

void count_failed_check(statistics::CheckKind kind, std::string_view name) noexcept {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return;
    header->failed_checks[static_cast<unsigned>(kind)].fetch_add(1, std::memory_order_relaxed);
    write_entry(EntryKind::check, LimitKind::none, 0, name);
}

}  // namespace tensorpool::events
