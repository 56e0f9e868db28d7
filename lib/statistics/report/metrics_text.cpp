#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include <tensorpool/metrics.hpp>
#include <tensorpool/process_snapshot.hpp>

#include "platform/platform.hpp"
#include "statistics/report/number_text.hpp"

namespace tensorpool {
namespace {

/// Escapes a text as the format requires: backslash and newline everywhere, quotes in label values.
std::string escaped(std::string_view text, bool quotes) {
    std::string out;
    for (const char letter : text) {
        if (letter == '\\' || (quotes && letter == '"')) out += '\\';
        if (letter == '\n') {
            out += "\\n";
        } else {
            out += letter;
        }
    }
    return out;
}

std::string value_text(double value) {
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return statistics::number_text(value);
}

void add_sample(std::string& out, const std::string& name, const MetricSample& sample) {
    out += name;
    char before = '{';
    for (const auto& [label, value] : sample.labels) {
        out += before + label + "=\"" + escaped(value, true) + '"';
        before = ',';
    }
    if (before == ',') out += '}';
    out += ' ' + value_text(sample.value) + '\n';
}

void add_family(std::string& out, const MetricFamily& family) {
    const char* const type = family.kind == MetricFamily::Kind::counter ? "counter" : "gauge";
    out += "# HELP " + family.name + ' ' + escaped(family.help, false) + '\n';
    out += "# TYPE " + family.name + ' ' + type + '\n';
    for (const MetricSample& sample : family.samples) add_sample(out, family.name, sample);
}

bool is_of_pools(const MetricFamily& family) {
    const auto& labels = family.samples.front().labels;
    return std::any_of(labels.begin(), labels.end(),
                       [](const auto& label) { return label.first == "pool"; });
}

}  // namespace

std::string to_prometheus(const std::vector<MetricFamily>& families) {
    std::string out;
    for (const MetricFamily& family : families) add_family(out, family);
    return out;
}

std::string to_prometheus(const std::vector<ProcessSnapshot>& snapshots) {
    return to_prometheus(metric_families(snapshots));
}

std::string to_prometheus(const PoolStatistics& statistics) {
    const platform::ProcessIdentity self = platform::identify_process();
    ProcessSnapshot process;
    process.process = self.number;
    process.process_name = self.name;
    process.pools = {statistics};
    std::vector<MetricFamily> families = metric_families({process});
    std::erase_if(families, [](const MetricFamily& family) { return !is_of_pools(family); });
    return to_prometheus(families);
}

std::string to_prometheus(const ProcessSnapshot& snapshot) {
    return to_prometheus(std::vector<ProcessSnapshot>{snapshot});
}

}  // namespace tensorpool
