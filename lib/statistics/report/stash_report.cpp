#include <string>

#include <tensorpool/stash_statistics.hpp>

#include "statistics/metrics/stash_metrics.hpp"
#include "statistics/report/report_parts.hpp"

namespace tensorpool {

const char* to_string(StashStatistics::Kind kind) noexcept {
    switch (kind) {
        case StashStatistics::Kind::stashes:
            return "stashes";
        case StashStatistics::Kind::map:
            return "map";
        case StashStatistics::Kind::frozen:
            return "frozen";
    }
    return "unknown";
}

std::string to_json(const StashStatistics& stash) {
    return "{\"name\":" + statistics::quoted(stash.name) +
           ",\"kind\":" + statistics::quoted(to_string(stash.kind)) + ',' +
           statistics::members(stash) + '}';
}

}  // namespace tensorpool
