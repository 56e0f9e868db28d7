#include "platform/memory/memory_pressure_linux.hpp"

#include <algorithm>
#include <string_view>

#include "platform/files/fields_linux.hpp"
#include "platform/files/line_reader_linux.hpp"
#include "platform/memory/control_groups_linux.hpp"

namespace tensorpool::platform {
namespace {

/// Returns the total of the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"; 0 without it.
std::uint64_t read_stalled_us(const char* path) noexcept {
    ShortLineReader lines(path);
    std::string_view line;
    if (!lines.next(line) || take_field(line, ' ') != "some") return 0;
    while (!line.empty()) {
        std::string_view field = take_field(line, ' ');
        if (take_field(field, '=') == "total") return parse_number(field).value_or(0);
    }
    return 0;
}

std::uint64_t read_events(GroupVersion version, Path& directory) noexcept {
    if (version == GroupVersion::one) return read_number(directory, "/memory.failcnt").value_or(0);
    std::uint64_t events = 0;
    for (const std::string_view event : {"high", "max", "oom"}) {
        events += read_field(directory, "/memory.events", event).value_or(0);
    }
    return events;
}

}  // namespace

MemoryPressure read_memory_pressure(const char* root) noexcept {
    MemoryPressure pressure;
    pressure.machine_stalled_us = read_stalled_us((Path(root) / "/proc/pressure/memory").c_str());
    for_each_memory_group(root, [&](GroupVersion version, Path& directory) {
        pressure.events += read_events(version, directory);
        if (version == GroupVersion::one) return;
        const LongerPath path(directory, "/memory.pressure");
        pressure.group_stalled_us =
            std::max(pressure.group_stalled_us, read_stalled_us(path.c_str()));
    });
    return pressure;
}

MemoryPressure read_memory_pressure() noexcept {
    return read_memory_pressure("");
}

}  // namespace tensorpool::platform
