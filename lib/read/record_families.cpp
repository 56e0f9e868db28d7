#include "read/record_families.hpp"

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
    return base::number_text(value);
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

}  // namespace

std::string to_prometheus(const std::vector<MetricFamily>& families) {
    std::string out;
    for (const MetricFamily& family : families) add_family(out, family);
    return out;
}

}  // namespace tensorpool
