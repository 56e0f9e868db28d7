#include "platform/memory/memory_limits_linux.hpp"

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
    /// In memory.stat, of the group and its descendants: the page cache that the kernel drops
    /// first, the other page cache, both with the memory of tmpfs, and that memory.
    std::string_view inactive_file;
    std::string_view active_file;
    std::string_view cache;
    std::string_view shared;
};

constexpr GroupFiles files_of(GroupVersion version) noexcept {
    if (version == GroupVersion::one) {
        return {"/memory.limit_in_bytes",
                "",
                "/memory.usage_in_bytes",
                "total_inactive_file",
                "total_active_file",
                "total_cache",
                "total_shmem"};
    }
    return {"/memory.max", "/memory.high", "/memory.current", "inactive_file", "active_file",
            "file",        "shmem"};
}

std::size_t read_limit(Path& directory, std::string_view file) noexcept {
    if (file.empty()) return no_limit;
    const std::size_t limit = read_number(directory, file).value_or(no_limit);
    // Version 1 writes "no limit" as 2^63 minus a page.
    return limit >= no_limit / 4 ? no_limit : limit;
}

std::size_t less(std::size_t from, std::size_t bytes) noexcept {
    return from - std::min(from, bytes);
}

// Memory that was offered to the kernel (MADV_FREE) counts as inactive page cache even after it was
// written again. So at most what the page cache can consist of counts as droppable.
std::size_t read_droppable(const GroupFiles& files, Path& directory) noexcept {
    ShortLineReader lines(LongerPath(directory, "/memory.stat").c_str());
    std::size_t inactive = 0;
    std::size_t active = 0;
    std::size_t cache = no_limit;
    std::size_t shared = 0;
    std::string_view line;
    while (lines.next(line)) {
        const std::string_view key = take_field(line, ' ');
        if (key == files.inactive_file) inactive = parse_number(line).value_or(0);
        if (key == files.active_file) active = parse_number(line).value_or(0);
        if (key == files.cache) cache = parse_number(line).value_or(no_limit);
        if (key == files.shared) shared = parse_number(line).value_or(0);
    }
    return std::min(inactive, less(less(cache, shared), active));
}

std::size_t read_usage(const GroupFiles& files, Path& directory) noexcept {
    return less(read_number(directory, files.usage).value_or(0), read_droppable(files, directory));
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
    std::size_t cache = 0;
    std::size_t file_pages = 0;
    std::size_t shared = no_limit;
    while (shared == no_limit && lines.next(line)) {
        const std::string_view key = take_field(line, ' ');
        const std::optional<std::size_t> kib = parse_number(line);
        if (!kib || *kib >= no_limit / 1024) continue;
        const std::size_t bytes = *kib * 1024;
        if (key == "MemTotal:") memory.total = bytes;
        if (key == "MemAvailable:") memory.available = bytes;
        if (key == "Buffers:" || key == "Cached:" || key == "SwapCached:") cache += bytes;
        if (key == "Active(file):" || key == "Inactive(file):") file_pages += bytes;
        if (key == "SwapFree:") memory.free_swap = bytes;
        if (key == "Shmem:") shared = bytes;
    }
    // What was offered to the kernel counts as available page cache, as in a control group.
    if (memory.available != no_limit) {
        const std::size_t file_cache = less(cache, shared == no_limit ? 0 : shared);
        memory.available = less(memory.available, less(file_pages, file_cache));
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
