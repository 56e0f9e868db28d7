#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "statistics/report/figures.hpp"

/// What the reports of pools, arenas and snapshots are put together from.
namespace tensorpool::statistics {

/// The text with U+FFFD for what is not UTF-8, such as a name cut within a letter.
std::string valid_utf8(const char* text);
/// A string of JSON (RFC 8259). What is not UTF-8 becomes U+FFFD.
std::string quoted(const char* text);

/// `"name":value,...`, without braces.
template <class Statistics, std::size_t count>
std::string members(const Statistics& statistics, const Figure<Statistics> (&figures)[count]) {
    std::string out;
    for (const Figure<Statistics>& figure : figures) {
        if (!out.empty()) out += ',';
        out += quoted(figure.name) + ':' + std::to_string(statistics.*figure.value);
    }
    return out;
}

/// `[{...},...]`, the elements as `to_json` of each.
template <class Container>
std::string array_of(const Container& elements) {
    std::string out = "[";
    for (const auto& element : elements) {
        if (out.size() > 1) out += ',';
        out += to_json(element);
    }
    return out + ']';
}

/// 0 where there is no whole.
double percent(std::uint64_t part, std::uint64_t whole) noexcept;

template <class... Arguments>
void add_line(std::string& out, const char* format, Arguments... arguments) {
    char line[256];
    std::snprintf(line, sizeof line, format, arguments...);
    out += line;
    out += '\n';
}

}  // namespace tensorpool::statistics
