#include "metrics/exposition.hpp"

#include <string>
#include <string_view>

namespace tensorpool::command {
namespace {

// In the text format, only these two characters are special in a help text.
std::string escape_help(std::string_view help) {
    std::string escaped;
    for (const char letter : help) {
        if (letter == '\\') {
            escaped += "\\\\";
        } else if (letter == '\n') {
            escaped += "\\n";
        } else {
            escaped += letter;
        }
    }
    return escaped;
}

prometheus::ClientMetric to_exposition(const MetricSample& sample, bool counts) {
    prometheus::ClientMetric metric;
    metric.label.reserve(sample.labels.size());
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    (counts ? metric.counter.value : metric.gauge.value) = sample.value;
    return metric;
}

prometheus::MetricFamily to_exposition(const MetricFamily& family) {
    const bool counts = family.kind == MetricFamily::Kind::counter;
    prometheus::MetricFamily made;
    made.name = family.name;
    made.help = escape_help(family.help);
    made.type = counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    made.metric.reserve(family.samples.size());
    for (const MetricSample& sample : family.samples) {
        made.metric.push_back(to_exposition(sample, counts));
    }
    return made;
}

}  // namespace

std::vector<prometheus::MetricFamily> to_exposition(const std::vector<MetricFamily>& families) {
    std::vector<prometheus::MetricFamily> all;
    all.reserve(families.size());
    for (const MetricFamily& family : families) all.push_back(to_exposition(family));
    return all;
}

}  // namespace tensorpool::command
