#pragma once

/// @file
/// The lines that `stat` prints.

#include <nlohmann/json.hpp>

#include "common/record_table.hpp"
#include "common/totals.hpp"

namespace tensorpool::command {

/// The state of a process, and its rates since the previous sample.
struct StatSample {
    std::uint64_t process = 0;
    std::uint64_t time_unix_ns = 0;
    double seconds = 0;  ///< the time span of the rates; 0: unknown, so there are no rates
    Totals totals;
    TotalRates rates;
};
/// The names of groups of records, as in JSON.
using RecordNames = std::vector<std::string_view>;

/// Wide enough for sizes in bytes, which do not fit into the 80 columns of a terminal.
inline constexpr std::size_t table_width = 120;

inline std::size_t size_width(Sizes sizes) {
    return sizes == Sizes::bytes ? 14 : 9;
}

inline std::string titled_text(const Table& table, bool is_first) {
    std::string text = (is_first ? "" : "\n") + table_text(table, table_width);
    text.pop_back();
    return text;
}

/// Breaks a sentence, which may exceed the width of a terminal, behind its first part.
inline std::string in_two_lines(std::string sentence) {
    const std::size_t end = sentence.find("; ");
    return end == std::string::npos ? sentence : sentence.replace(end, 2, ";\n  ");
}

inline StatSample compare(const ProcessSnapshot& older, const ProcessSnapshot& newer) {
    const ProcessRates rates = difference(older, newer);
    return {newer.process, newer.time_unix_ns, rates.seconds, add_up(newer), add_up(rates)};
}

/// Makes the first sample: averages since the process began, `age` seconds ago.
inline StatSample since_start(const ProcessSnapshot& snapshot, double age) {
    StatSample sample{snapshot.process, snapshot.time_unix_ns, age, add_up(snapshot), {}};
    if (age <= 0) return sample;
    const auto rate = [&](std::uint64_t total) { return static_cast<double>(total) / age; };
    sample.rates.allocations = rate(sample.totals.allocations);
    sample.rates.deallocations = rate(sample.totals.deallocations);
    sample.rates.failures = rate(sample.totals.failures);
    sample.rates.faults = rate(snapshot.minor_faults);
    for (const PoolStatistics& pool : snapshot.pools) {
        sample.rates.allocated_bytes += rate(pool.allocated_bytes);
    }
    if (sample.totals.allocations > 0) {
        sample.rates.hit_ratio = ratio(sample.totals.cache_hits, sample.totals.allocations);
    }
    return sample;
}

inline std::string stat_titles(Sizes sizes) {
    const std::size_t width = size_width(sizes);
    return fmt::format("{:>{}} {:>{}} {:>{}} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8}", "in use", width,
                       "capacity", width, "peak", width, "util", "hits", "allocs/s", "frees/s",
                       "faults/s", "failures");
}

/// Returns a line of at most 80 columns, except with sizes in bytes.
inline std::string stat_line(const StatSample& sample, Sizes sizes) {
    const std::size_t width = size_width(sizes);
    const auto rate = [&](double value) {
        return sample.seconds > 0 ? format_count(value) : std::string("-");
    };
    return fmt::format("{:>{}} {:>{}} {:>{}} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8}",
                       format_size(sample.totals.in_use_bytes, sizes), width,
                       format_size(sample.totals.capacity_bytes, sizes), width,
                       format_size(sample.totals.peak_bytes, sizes), width,
                       format_part(ratio(sample.totals.in_use_bytes, sample.totals.capacity_bytes)),
                       sample.seconds > 0 ? format_part(sample.rates.hit_ratio) : "-",
                       rate(sample.rates.allocations), rate(sample.rates.deallocations),
                       rate(sample.rates.faults),
                       format_count(static_cast<double>(sample.totals.failures)));
}

inline std::string stat_json(const StatSample& sample) {
    nlohmann::ordered_json json = {{"process", sample.process},
                                   {"time_unix_ns", sample.time_unix_ns},
                                   {"seconds", sample.seconds}};
    for (const TotalMetric& metric : total_metrics) {
        json[metric.name] = sample.totals.*metric.value;
    }
    json["allocations_rate"] = sample.rates.allocations;
    json["deallocations_rate"] = sample.rates.deallocations;
    json["allocated_bytes_rate"] = sample.rates.allocated_bytes;
    json["minor_faults_rate"] = sample.rates.faults;
    json["hit_ratio"] = sample.rates.hit_ratio;
    return json.dump();
}

/// Returns a table for each device allocator, with PyTorch's names beside ours. An empty line
/// precedes all samples but the first. There is no newline at the end.
inline std::string stat_devices(const ProcessSnapshot& snapshot, Sizes sizes, bool is_first) {
    const std::vector<RecordGroup> groups = record_groups(snapshot);
    const RecordGroup& devices = *std::ranges::find(groups, "devices", &RecordGroup::name);
    std::string text;
    for (const RecordGroup::Record& device : devices.records) {
        if (!is_first || !text.empty()) text += '\n';
        text += fmt::format("{} on {}\n", printable(device.name), printable(device.text)) +
                titled_text(details_table(devices, device, sizes), true) + '\n';
        for (const DeviceStreamStatistics& stream : snapshot.device_streams) {
            if (stream.device == device.id) text += in_two_lines(to_text(stream)) + '\n';
        }
    }
    if (text.empty()) return "no allocator of device memory now";
    text.pop_back();
    return text;
}

/// Returns a table for each group that has records. An empty line precedes each table but the
/// first. Returns "" without records.
inline std::string stat_records(const ProcessSnapshot& snapshot, const RecordNames& names,
                                Sizes sizes, bool is_first) {
    const std::vector<RecordGroup> groups = record_groups(snapshot);
    std::string text;
    for (const std::string_view& name : names) {
        const Table table = record_table(groups, {&name, 1}, sizes);
        if (table.rows.empty()) continue;
        if (!text.empty()) text += '\n';
        text += titled_text(table, is_first && text.empty());
    }
    return text;
}

/// Returns `{"process":...,"time_unix_ns":...,"planned":[...]}`, with a list for each group.
inline std::string stat_records_json(const ProcessSnapshot& snapshot, const RecordNames& names) {
    std::string text =
        fmt::format(R"({{"process":{},"time_unix_ns":{})", snapshot.process, snapshot.time_unix_ns);
    for (const RecordGroup& group : record_groups(snapshot)) {
        if (std::ranges::find(names, group.name) == names.end()) continue;
        text += fmt::format(R"(,"{}":{})", group.name, to_json(group));
    }
    return text + '}';
}

}  // namespace tensorpool::command
