#include "platform/memory/memory_limits_linux.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "platform/files/fields_linux.hpp"
#include "platform/files/line_reader_linux.hpp"
#include "platform/files/path_linux.hpp"
#include "platform/memory/control_groups_linux.hpp"

namespace tensorpool::platform {
namespace {

/// The names of a group's files in one version.
struct GroupFiles {
    std::string_view limit;
    /// Above this limit the kernel slows the group down and reclaims pages. Version 1 has no such
    /// limit.
    std::string_view soft_limit;
    std::string_view usage;
    /// In memory.stat: the page cache of the group and its descendants that the kernel drops first.
    std::string_view droppable;
};

constexpr GroupFiles files_of(GroupVersion version) noexcept {
    if (version == GroupVersion::one) {
        return {"/memory.limit_in_bytes", "", "/memory.usage_in_bytes", "total_inactive_file"};
    }
    return {"/memory.max", "/memory.high", "/memory.current", "inactive_file"};
}

std::size_t read_limit(Path& directory, std::string_view file) noexcept {
    if (file.empty()) return no_limit;
    const std::size_t limit = read_number(directory, file).value_or(no_limit);
    // Version 1 writes "no limit" as 2^63 minus a page.
    return limit >= no_limit / 4 ? no_limit : limit;
}

std::size_t read_usage(const GroupFiles& files, Path& directory) noexcept {
    const std::size_t usage = read_number(directory, files.usage).value_or(0);
    const std::size_t droppable =
        read_field(directory, "/memory.stat", files.droppable).value_or(0);
    return usage - std::min(usage, droppable);
}

void apply_group(const GroupFiles& files, Path& directory, MemoryLimits& limits) noexcept {
    const std::size_t limit =
        std::min(read_limit(directory, files.limit), read_limit(directory, files.soft_limit));
    if (limit == no_limit) return;
    const std::size_t usage = read_usage(files, directory);
    limits.total = std::min(limits.total, limit);
    const std::size_t left = limit - std::min(limit, usage);
    if (left < limits.available) limits.binding = limit;
    limits.available = std::min(limits.available, left);
    limits.committable = std::min(limits.committable, left);
}

struct MachineMemory {
    std::size_t total = no_limit;
    std::size_t available = no_limit;
    std::size_t free_swap = no_limit;
};

/// Reads the file once, because the kernel generates the text for each reader.
MachineMemory read_machine(const char* root) noexcept {
    MachineMemory memory;
    Path path(root);
    ShortLineReader lines(LongerPath(path, "/proc/meminfo").c_str());
    std::string_view line;
    while (memory.free_swap == no_limit && lines.next(line)) {
        const std::string_view key = take_field(line, ' ');
        const std::optional<std::size_t> kib = parse_number(line);
        if (!kib || *kib >= no_limit / 1024) continue;
        if (key == "MemTotal:") memory.total = *kib * 1024;
        if (key == "MemAvailable:") memory.available = *kib * 1024;
        if (key == "SwapFree:") memory.free_swap = *kib * 1024;
    }
    return memory;
}

}  // namespace

MemoryLimits read_memory_limits(const char* root) noexcept {
    MemoryLimits limits;
    const MachineMemory machine = read_machine(root);
    limits.total = machine.total;
    limits.available = limits.committable = machine.available;
    if (machine.free_swap < no_limit - limits.available) limits.committable += machine.free_swap;
    for_each_memory_group(root, [&](GroupVersion version, Path& directory) {
        apply_group(files_of(version), directory, limits);
    });
    return limits;
}

}  // namespace tensorpool::platform
