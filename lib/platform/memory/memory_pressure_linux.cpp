#include "platform/memory/memory_limits_linux.hpp"

#include <sys/eventfd.h>

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

namespace {

/// Registers the descriptor with a group. The kernel keeps the registration until the descriptor is
/// closed everywhere.
bool request_reports(int file, Path& group) noexcept {
    const int control =
        open(LongerPath(group, "/cgroup.event_control").c_str(), O_WRONLY | O_CLOEXEC);
    if (control < 0) return false;
    const int level =
        open(LongerPath(group, "/memory.pressure_level").c_str(), O_RDONLY | O_CLOEXEC);
    bool is_registered = false;
    if (level >= 0) {
        char request[64];
        const int bytes = std::snprintf(request, sizeof request, "%d %d medium,local", file, level);
        is_registered = write(control, request, static_cast<std::size_t>(bytes)) == bytes;
        close(level);
    }
    close(control);
    return is_registered;
}

/// What /proc says of a descriptor: the lines "eventfd-count:" and "eventfd-id:" of proc(5).
/// Reading these instead of the descriptor changes nothing for other processes that share it.
struct EventState {
    std::uint64_t count = 0;
    std::uint64_t id = 0;
};

std::uint64_t number_in(std::string_view text, int base) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number, base);
    return number;
}

/// Returns nullopt if the descriptor is no event.
std::optional<EventState> state_of(int file) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", file);
    ShortLineReader lines(path);
    EventState state;
    bool is_event = false;
    std::string_view line;
    while (lines.next(line)) {
        const std::string_view key = take_field(line, ':');
        if (key == "eventfd-count") state.count = number_in(line, 16);
        if (key != "eventfd-id") continue;
        state.id = number_in(line, 10);
        is_event = true;
    }
    return is_event ? std::optional(state) : std::nullopt;
}

}  // namespace

PressureEvent open_pressure_event(const char* root) noexcept {
    const SystemCalls system_calls;
    const int opened = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (opened < 0) return {};
    const int file = move_high(opened);
    const std::optional<EventState> state = state_of(file);
    bool is_registered = false;
    if (state) {
        for_each_memory_group(root, [&](GroupVersion version, Path& group) {
            if (version == GroupVersion::one && request_reports(file, group)) is_registered = true;
        });
    }
    if (is_registered) return {file, state->id};
    close(file);
    return {};
}

PressureEvent open_pressure_event() noexcept {
    return open_pressure_event("");
}

void close_pressure_event(const PressureEvent& event) noexcept {
    const SystemCalls system_calls;
    if (event.file < 0) return;
    const std::optional<EventState> state = state_of(event.file);
    if (state && state->id == event.id) close(event.file);
}

std::uint64_t count_reports(const PressureEvent& event) noexcept {
    if (event.file < 0) return 0;
    const std::optional<EventState> state = state_of(event.file);
    return state && state->id == event.id ? state->count : 0;
}

}  // namespace tensorpool::platform
