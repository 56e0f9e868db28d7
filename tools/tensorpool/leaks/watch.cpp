#include "leaks/watch.hpp"

#include <algorithm>
#include <utility>

namespace tensorpool::command::leaks {
namespace {

/// The bytes of a mark's text that the timeline keeps.
constexpr std::size_t mark_bytes = 23;

bool ends_iteration(const TimelineEntry& entry, const std::string& mark) {
    return entry.kind == EntryKind::mark &&
           (mark.empty() || entry.name == mark.substr(0, mark_bytes));
}

}  // namespace

void Watch::look(StatisticsReader& process) {
    const bool has = pace_.is_by_marks() ? has_ended(process) : has_time_passed();
    if (!has || is_complete()) return;
    if (last_) observation_.add(*std::exchange(last_, std::nullopt), iterations_of_last_);
    last_ = process.heap_profile();
    iterations_of_last_ = iterations_;
}

/// Adds up the iterations whose marks are new. At the first call, there are only earlier marks.
bool Watch::has_ended(StatisticsReader& process) {
    const TimelinePart part = process.entries_since(last_entry_);
    last_entry_ = part.last;
    const auto marks = std::ranges::count_if(part.entries, [&](const TimelineEntry& entry) {
        return ends_iteration(entry, pace_.mark);
    });
    has_marks_ = has_marks_ || marks != 0;
    if (std::exchange(is_first_look_, false)) return false;
    iterations_ += static_cast<std::uint64_t>(marks);
    return marks != 0;
}

bool Watch::has_time_passed() {
    const auto now = std::chrono::steady_clock::now();
    if (std::exchange(is_first_look_, false)) {
        next_ = now;
    } else if (now < next_) {
        return false;
    } else {
        ++iterations_;
    }
    next_ += std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(pace_.seconds));
    next_ = std::max(next_, now);
    return true;
}

}  // namespace tensorpool::command::leaks
