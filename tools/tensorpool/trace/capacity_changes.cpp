#include "trace/capacity_changes.hpp"

#include <algorithm>
#include <utility>

namespace tensorpool::command::trace {

// What a recorder that begins tells of a source may come after its end: that is not of any moment.
std::vector<CapacityChange> CapacityChanges::take(std::size_t sources) {
    std::vector<bool> tells(sources);
    std::vector<std::uint64_t> ended(sources, UINT64_MAX);
    for (const CapacityChange& change : changes_) tells[change.source] = true;
    for (const CapacityChange& end : ends_) {
        ended[end.source] = std::min(ended[end.source], end.time_ns);
    }
    std::erase_if(changes_, [&](const CapacityChange& change) {
        return change.time_ns >= ended[change.source];
    });
    for (std::uint32_t source = 0; source < sources; ++source) {
        if (!tells[source] || ended[source] == UINT64_MAX) continue;
        changes_.push_back({ended[source], 0, source});
    }
    std::ranges::stable_sort(changes_, {}, &CapacityChange::time_ns);
    return std::move(changes_);
}

}  // namespace tensorpool::command::trace
