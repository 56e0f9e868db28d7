#include <string>

#include <tensorpool/planned_arena_statistics.hpp>

#include "base/text.hpp"
#include "statistics/metrics/planned_metrics.hpp"
#include "statistics/report/report_parts.hpp"

namespace tensorpool {
namespace {

using base::BytesText;
using statistics::add_line;
using statistics::members;
using statistics::percent;
using statistics::quoted;
using Count = unsigned long long;

/// Formats by how much a peak exceeds the lower bound; "" if there is nothing to compare.
std::string above_bound(std::uint64_t peak, std::uint64_t bound) {
    if (bound == 0 || peak < bound) return "";
    char text[32];
    std::snprintf(text, sizeof text, " (+%.1f %%)", percent(peak - bound, bound));
    return text;
}

std::string peak_text(std::uint64_t peak, std::uint64_t bound) {
    return peak == 0 ? "-" : BytesText(peak).c_str() + above_bound(peak, bound);
}

void add_peaks(std::string& out, const PlannedArenaStatistics& statistics) {
    add_line(out, "  peaks     lower bound %s, pool %s, plan %s",
             BytesText(statistics.lower_bound_bytes).c_str(),
             peak_text(statistics.pool_peak_bytes, statistics.lower_bound_bytes).c_str(),
             peak_text(statistics.plan_peak_bytes, statistics.lower_bound_bytes).c_str());
}

void add_requests(std::string& out, const PlannedArenaStatistics& statistics) {
    const std::uint64_t requests = statistics.served + statistics.from_pool;
    add_line(out, "  requests  %llu from the plan (%.1f %%), %llu from the pool",
             static_cast<Count>(statistics.served), percent(statistics.served, requests),
             static_cast<Count>(statistics.from_pool));
    const std::uint64_t missed = statistics.too_large + statistics.out_of_order +
                                 statistics.unknown + statistics.still_in_use;
    if (missed == 0) return;
    add_line(out, "  missed    %llu too large, %llu out of order, %llu unknown, %llu still in use",
             static_cast<Count>(statistics.too_large), static_cast<Count>(statistics.out_of_order),
             static_cast<Count>(statistics.unknown), static_cast<Count>(statistics.still_in_use));
}

}  // namespace

const char* to_string(PlannedArenaStatistics::State state) noexcept {
    switch (state) {
        case PlannedArenaStatistics::State::learning:
            return "learning";
        case PlannedArenaStatistics::State::planning:
            return "planning";
        case PlannedArenaStatistics::State::serving:
            return "serving";
    }
    return "unknown";
}

std::string to_json(const PlannedArenaStatistics& statistics) {
    return "{\"version\":" + std::to_string(statistics.version) +
           ",\"name\":" + quoted(statistics.name) +
           ",\"state\":" + quoted(to_string(statistics.state)) + ',' + members(statistics) + '}';
}

std::string to_text(const PlannedArenaStatistics& statistics) {
    std::string out;
    add_line(out, "tensorpool: planned arena '%s', %s, %llu iterations, %llu buffers",
             statistics.name, to_string(statistics.state),
             static_cast<Count>(statistics.iterations), static_cast<Count>(statistics.buffers));
    add_peaks(out, statistics);
    add_line(out, "  in use    %s of %s held for the plan, %s of the pool's blocks",
             BytesText(statistics.in_use_bytes).c_str(),
             BytesText(statistics.capacity_bytes).c_str(),
             BytesText(statistics.pool_in_use_bytes).c_str());
    add_requests(out, statistics);
    add_line(out, "  plans     %llu, %.1f ms spent on them", static_cast<Count>(statistics.plans),
             static_cast<double>(statistics.planning_ns) / 1e6);
    return out;
}

}  // namespace tensorpool
