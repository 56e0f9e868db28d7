#include "statistics/segment/failed_checks.hpp"

#include "statistics/segment/segment.hpp"
#include "statistics/timeline/timeline.hpp"

namespace tensorpool::statistics {

void count_failed_check(CheckKind kind, std::string_view name) noexcept {
    SegmentHeader* const header = segment().header();
    if (header == nullptr) return;
    header->failed_checks[static_cast<unsigned>(kind)].fetch_add(1, std::memory_order_relaxed);
    write_entry(EntryKind::check, LimitKind::none, 0, name);
}

}  // namespace tensorpool::statistics
