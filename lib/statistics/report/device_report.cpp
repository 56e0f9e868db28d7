#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include <tensorpool/device_statistics.hpp>

#include "base/text.hpp"
#include "statistics/metrics/device_metrics.hpp"
#include "statistics/report/report_parts.hpp"

namespace tensorpool {
namespace {

using base::BytesText;
using statistics::add_line;
using statistics::members;
using statistics::percent;
using statistics::quoted;
using Kind = DeviceStatistics::Kind;
using Count = unsigned long long;

const char* word_of(Kind kind) noexcept {
    switch (kind) {
        case Kind::caching:
            return "caching";
        case Kind::pinned:
            return "pinned";
        case Kind::host:
            return "host";
    }
    return "unknown";
}

std::string size(std::uint64_t bytes) {
    return BytesText(bytes).c_str();
}

/// Returns a duration such as "5.2 s" or "12 ms".
std::string duration_text(std::uint64_t ns) {
    const double seconds = static_cast<double>(ns) / 1e9;
    char text[32];
    std::snprintf(text, sizeof text, seconds < 1 ? "%.0f ms" : "%.1f s",
                  seconds < 1 ? seconds * 1000 : seconds);
    return text;
}

std::string limit_text(std::uint64_t bytes) {
    return bytes == 0 ? "none" : size(bytes);
}

/// Returns PyTorch's name for what `metric` counts, without its suffix: of
/// "allocated_bytes.all.current" the first part.
std::string pytorch_word(std::string_view metric) {
    const auto& all = statistics::Metrics<DeviceStatistics>::all;
    const auto* const found =
        std::ranges::find(all, metric, [](const auto& one) { return std::string_view(one.name); });
    const std::string_view word = found->pytorch;
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

}  // namespace

std::string to_text(const DeviceStreamStatistics& stream) {
    const std::string name =
        stream.stream == 0 ? "the default stream" : "stream " + std::to_string(stream.stream);
    const bool is_graph = stream.capture != 0;
    std::string text = (is_graph ? "graphs captured on " : "") + name;
    if (stream.held_bytes != 0) {
        text += (is_graph ? " hold " : " holds ") + size(stream.held_bytes) + ", of which " +
                size(stream.used_bytes - stream.parked_bytes) + " are in use";
        if (is_graph) text += ", until they are released";
    }
    if (stream.waiting_bytes == 0) return text;
    text += (stream.held_bytes != 0 ? "; " : ": ") + size(stream.waiting_bytes) +
            " that were freed have waited for its work";
    if (stream.waiting_ns != 0) text += " for " + duration_text(stream.waiting_ns);
    return text;
}

std::string to_json(const DeviceStreamStatistics& stream) {
    const auto member = [](const char* name, std::uint64_t value) {
        return quoted(name) + ':' + std::to_string(value) + ',';
    };
    return '{' + member("device", stream.device) + member("stream", stream.stream) +
           member("capture", stream.capture) + member("held_bytes", stream.held_bytes) +
           member("used_bytes", stream.used_bytes) + member("parked_bytes", stream.parked_bytes) +
           member("waiting_bytes", stream.waiting_bytes) + member("waiting_ns", stream.waiting_ns) +
           "\"text\":" + quoted(to_text(stream).c_str()) + '}';
}

std::string to_json(const DeviceStatistics& statistics) {
    return "{\"version\":" + std::to_string(statistics.version) +
           ",\"name\":" + quoted(statistics.name) +
           ",\"kind\":" + quoted(word_of(statistics.kind)) +
           ",\"device\":" + quoted(statistics.device) + ',' + members(statistics) + '}';
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

}  // namespace tensorpool
