#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

/// What the reports of pools, arenas and snapshots are put together from.
namespace tensorpool::statistics {

/// A figure and its name in JSON.
template <class Statistics>
struct Field {
    const char* name;
    std::uint64_t Statistics::*value;
};

/// A string of JSON (RFC 8259). What is not UTF-8 becomes U+FFFD.
std::string quoted(const char* text);

/// `"name":value,...`, without braces.
template <class Statistics, std::size_t count>
std::string members(const Statistics& statistics, const Field<Statistics> (&fields)[count]) {
    std::string out;
    for (const Field<Statistics>& field : fields) {
        if (!out.empty()) out += ',';
        out += quoted(field.name) + ':' + std::to_string(statistics.*field.value);
    }
    return out;
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
