#include "plan/planner/windows_in_time.hpp"

#include <algorithm>
#include <bit>

namespace tensorpool::planner {
namespace {

/// Returns the level of the shortest windows. About half as many buffers begin in one of them as
/// are alive at any moment. Shorter windows would hold hardly fewer buffers, and each buffer would
/// have to be added to more of them.
unsigned min_shift(const Problem& problem) {
    double alive = 0;
    for (const Buffer& buffer : problem.buffers) alive += buffer.end - buffer.begin;
    const auto count = static_cast<double>(problem.buffers.size());
    const double slices = alive / (2 * count);
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(slices)));
}

}  // namespace

TimeWindows::TimeWindows(const Problem& problem) {
    const auto max_shift = static_cast<unsigned>(std::bit_width(problem.slices));
    for (unsigned shift = std::min(min_shift(problem), max_shift);; ++shift) {
        levels_.push_back({shift, std::vector<OffsetList>((problem.slices >> shift) + 1U)});
        if (problem.slices <= std::uint64_t{2} << shift) return;
    }
}

template <class Visit>
void TimeWindows::visit_windows(const Placed& placed, Visit visit) {
    for (Level& level : levels_) {
        const std::size_t first = placed.begin >> level.shift;
        const std::size_t last = (placed.end - 1) >> level.shift;
        for (std::size_t i = first == 0 ? 0 : first - 1; i <= last; ++i) visit(level.windows[i]);
    }
}

void TimeWindows::add(const Placed& placed) {
    visit_windows(placed, [&](OffsetList& window) { window.add(placed); });
}

void TimeWindows::remove(const Placed& placed) {
    visit_windows(placed, [&](OffsetList& window) { window.remove(placed); });
}

const OffsetList& TimeWindows::around(const Buffer& buffer) const {
    const auto lies_within = [&](const Level& level) {
        return (buffer.end - 1) >> level.shift <= (buffer.begin >> level.shift) + 1;
    };
    const auto level = std::find_if(levels_.begin(), levels_.end() - 1, lies_within);
    return level->windows[buffer.begin >> level->shift];
}

}  // namespace tensorpool::planner
