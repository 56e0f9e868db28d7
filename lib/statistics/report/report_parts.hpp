#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "statistics/metrics/metric.hpp"

/// Functions that the reports of pools, arenas and snapshots share.
namespace tensorpool::statistics {

/// Returns the text with U+FFFD in place of invalid UTF-8, such as a name cut within a character.
std::string valid_utf8(const char* text);
/// Returns the text as a JSON string (RFC 8259). Invalid UTF-8 becomes U+FFFD.
std::string quoted(const char* text);

/// Formats a number, or a list of numbers.
template <class Statistics>
std::string value_text(const Statistics& statistics, const Field<Statistics>& field) {
    if (field.number != nullptr) return std::to_string(statistics.*field.number);
    std::string out = "[";
    for (const std::uint64_t value : statistics.*field.list) {
        if (out.size() > 1) out += ',';
        out += std::to_string(value);
    }
    return out + ']';
}

/// Formats all metrics as `"name":value,...`, without braces.
template <class Statistics>
std::string members(const Statistics& statistics) {
    std::string out;
    for (const auto& metric : Metrics<Statistics>::all) {
        if (!out.empty()) out += ',';
        out += quoted(metric.name) + ':' + value_text(statistics, metric.field);
    }
    return out;
}

/// Formats a JSON array `[{...},...]` whose elements are formatted by `to_json`.
template <class Container>
std::string array_of(const Container& elements) {
    std::string out = "[";
    for (const auto& element : elements) {
        if (out.size() > 1) out += ',';
        out += to_json(element);
    }
    return out + ']';
}

/// Returns the percentage; 0 if `whole` is 0.
double percent(std::uint64_t part, std::uint64_t whole) noexcept;

template <class... Arguments>
void add_line(std::string& out, const char* format, Arguments... arguments) {
    char line[256];
    std::snprintf(line, sizeof line, format, arguments...);
    out += line;
    out += '\n';
}

}  // namespace tensorpool::statistics
