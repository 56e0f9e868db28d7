#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/planned_arena_statistics.hpp>

#include "base/report_text.hpp"
#include "base/text.hpp"
#include "snapshot/typed_records.hpp"

namespace tensorpool {
namespace {

using base::add_line;
using base::BytesText;
using base::percent;
using Count = unsigned long long;

const char* word_of(DeviceStatistics::Kind kind) noexcept {
    switch (kind) {
        case DeviceStatistics::Kind::caching:
            return "caching";
        case DeviceStatistics::Kind::pinned:
            return "pinned";
        case DeviceStatistics::Kind::host:
            return "host";
    }
    return "unknown";
}

std::string size(std::uint64_t bytes) {
    return BytesText(bytes).c_str();
}

std::string limit_text(std::uint64_t bytes) {
    return bytes == 0 ? "none" : size(bytes);
}

/// Returns PyTorch's name for what `metric` counts, without its suffix: of
/// "allocated_bytes.all.current" the first part.
std::string pytorch_word(std::string_view metric) {
    const std::string_view word =
        statistics::devices::fields[statistics::devices::at(metric)].pytorch;
    return std::string(word.substr(0, word.find(".all.")));
}

/// Adds one row of the table that shows PyTorch's names next to tensorpool's. `metric` has the
/// PyTorch name.
void add_row(std::string& out, const char* ours, const char* metric, const std::string& now,
             const std::string& peak, const std::string& allocated, const std::string& freed) {
    add_line(out, "  %-15s %-20s %9s %9s %10s %10s", ours, pytorch_word(metric).c_str(),
             now.c_str(), peak.c_str(), allocated.c_str(), freed.c_str());
}

void add_table(std::string& out, const DeviceStatistics& statistics) {
    const DeviceStatistics& f = statistics;
    add_line(out, "  %-15s %-20s %9s %9s %10s %10s", "ours", "PyTorch", "now", "peak", "allocated",
             "freed");
    add_row(out, "in use", "in_use_bytes", size(f.in_use_bytes), size(f.peak_in_use_bytes),
            size(f.allocated_bytes), size(f.deallocated_bytes));
    add_row(out, "in use, blocks", "allocations", std::to_string(f.allocations - f.deallocations),
            "", std::to_string(f.allocations), std::to_string(f.deallocations));
    add_row(out, "requested", "requested_in_use_bytes", size(f.requested_in_use_bytes), "",
            size(f.requested_bytes), "");
    add_row(out, "+ deferred", "peak_active_bytes", size(f.in_use_bytes + f.deferred_bytes),
            size(f.peak_active_bytes), "", "");
    add_row(out, "capacity", "capacity_bytes", size(f.capacity_bytes), size(f.peak_capacity_bytes),
            size(f.grown_bytes), size(f.given_back_bytes));
    add_row(out, "slabs", "slabs", std::to_string(f.slabs), "", "", "");
    add_row(out, "split", "split_bytes", size(f.split_bytes), "", "", "");
}

void add_free(std::string& out, const DeviceStatistics& statistics) {
    add_line(out, "  free      %s in %llu runs, %s parked; %s deferred in %llu blocks",
             BytesText(statistics.free_bytes - statistics.parked_bytes).c_str(),
             static_cast<Count>(statistics.free_blocks), BytesText(statistics.parked_bytes).c_str(),
             BytesText(statistics.deferred_bytes).c_str(),
             static_cast<Count>(statistics.deferred_blocks));
    if (statistics.address_bytes != 0 || statistics.captured_bytes != 0) {
        add_line(out, "  besides   %s of address space, %s in slabs of graphs",
                 BytesText(statistics.address_bytes).c_str(),
                 BytesText(statistics.captured_bytes).c_str());
    }
}

void add_work(std::string& out, const DeviceStatistics& statistics) {
    add_line(out, "  served    %.1f %% by parked blocks, %.1f %% by free runs",
             percent(statistics.parked_hits, statistics.allocations),
             percent(statistics.free_hits, statistics.allocations));
    add_line(out, "  device    grew %llu times, gave back %llu times, waited %llu times",
             static_cast<Count>(statistics.growths), static_cast<Count>(statistics.give_backs),
             static_cast<Count>(statistics.synchronizations));
    add_line(out, "  streams   %llu, %llu uses across them, %llu events",
             static_cast<Count>(statistics.streams),
             static_cast<Count>(statistics.cross_stream_uses),
             static_cast<Count>(statistics.events));
    if (statistics.limit_bytes != 0 || statistics.soft_limit_bytes != 0) {
        add_line(out, "  limit     %s, gives back from %s",
                 limit_text(statistics.limit_bytes).c_str(),
                 limit_text(statistics.soft_limit_bytes).c_str());
    }
    if (statistics.pressures != 0 || statistics.failures != 0) {
        add_line(out, "  pressed   %llu requests waited for memory, %llu failed",
                 static_cast<Count>(statistics.pressures), static_cast<Count>(statistics.failures));
    }
}

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

const char* noun_of(ArenaStatistics::Kind kind) noexcept {
    switch (kind) {
        case ArenaStatistics::Kind::buffer:
            return "arena over a buffer";
        case ArenaStatistics::Kind::measuring:
            return "measuring arena";
        case ArenaStatistics::Kind::scratch:
            return "scratch";
        default:
            return "arena";
    }
}

}  // namespace

std::string to_text(const ArenaStatistics& one) {
    std::string out;
    add_line(out, "tensorpool: %s '%s'", noun_of(one.kind), one.name);
    add_line(out, "  used      %s of %s committed (%.1f %%), peak %s of %s",
             BytesText(one.used_bytes).c_str(), BytesText(one.capacity_bytes).c_str(),
             percent(one.used_bytes, one.capacity_bytes), BytesText(one.peak_used_bytes).c_str(),
             BytesText(one.peak_capacity_bytes).c_str());
    add_line(out, "  calls     %llu allocations, %llu releases",
             static_cast<Count>(one.allocations), static_cast<Count>(one.releases));
    add_line(out, "  system    reserved %s, grew %llu times by %s, gave back %llu times %s",
             BytesText(one.reserved_bytes).c_str(), static_cast<Count>(one.growths),
             BytesText(one.grown_bytes).c_str(), static_cast<Count>(one.give_backs),
             BytesText(one.given_back_bytes).c_str());
    if (one.limit_bytes != 0) add_line(out, "  limit     %s", BytesText(one.limit_bytes).c_str());
    if (one.refusals != 0) {
        add_line(out, "  refused   %llu requests", static_cast<Count>(one.refusals));
    }
    return out;
}

std::string to_text(const DeviceStatistics& statistics) {
    std::string out;
    add_line(out, "tensorpool: %s allocator '%s' of %s", word_of(statistics.kind), statistics.name,
             statistics.device);
    add_table(out, statistics);
    add_free(out, statistics);
    add_work(out, statistics);
    return out;
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
