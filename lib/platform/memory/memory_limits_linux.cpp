#include "platform/memory/memory_limits_linux.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "platform/files/fields_linux.hpp"
#include "platform/files/line_reader_linux.hpp"
#include "platform/files/path_linux.hpp"

namespace tensorpool::platform {
namespace {

/// Describes one version of control groups: its mounts and the names of its files.
struct CgroupVersion {
    std::string_view filesystem;
    /// In the list of a mount's options and of a group's controllers. Version 2 leaves it empty.
    std::string_view controller;
    std::string_view limit;
    /// Above this limit the kernel slows the group down and reclaims pages. Version 1 has no such
    /// limit.
    std::string_view soft_limit;
    std::string_view usage;
    /// In memory.stat: the page cache of the group and its descendants that the kernel drops first.
    std::string_view droppable;
};

constexpr CgroupVersion cgroup_versions[] = {
    {"cgroup", "memory", "/memory.limit_in_bytes", "", "/memory.usage_in_bytes",
     "total_inactive_file"},
    {"cgroup2", "", "/memory.max", "/memory.high", "/memory.current", "inactive_file"},
};

// Files ------------------------------------------------------------------------------------------

bool list_has(std::string_view list, std::string_view item) noexcept {
    while (!list.empty()) {
        if (take_field(list, ',') == item) return true;
    }
    return false;
}

// `directory` is the same again after each call.
std::optional<std::size_t> read_number(Path& directory, std::string_view file) noexcept {
    ShortLineReader lines(LongerPath(directory, file).c_str());
    std::string_view line;
    if (!lines.next(line)) return std::nullopt;
    return parse_number(line);
}

/// Returns the number in the line that begins with `key` and a space.
std::optional<std::size_t> read_field(Path& directory, std::string_view file,
                                      std::string_view key) noexcept {
    ShortLineReader lines(LongerPath(directory, file).c_str());
    std::string_view line;
    while (lines.next(line)) {
        if (take_field(line, ' ') == key) return parse_number(line);
    }
    return std::nullopt;
}

// Limits of a group ------------------------------------------------------------------------------

std::size_t read_limit(Path& directory, std::string_view file) noexcept {
    if (file.empty()) return no_limit;
    const std::size_t limit = read_number(directory, file).value_or(no_limit);
    // Version 1 writes "no limit" as 2^63 minus a page.
    return limit >= no_limit / 4 ? no_limit : limit;
}

std::size_t read_usage(const CgroupVersion& version, Path& directory) noexcept {
    const std::size_t usage = read_number(directory, version.usage).value_or(0);
    const std::size_t droppable =
        read_field(directory, "/memory.stat", version.droppable).value_or(0);
    return usage - std::min(usage, droppable);
}

void apply_group(const CgroupVersion& version, Path& directory, MemoryLimits& limits) noexcept {
    const std::size_t limit =
        std::min(read_limit(directory, version.limit), read_limit(directory, version.soft_limit));
    if (limit == no_limit) return;
    const std::size_t usage = read_usage(version, directory);
    limits.total = std::min(limits.total, limit);
    const std::size_t left = limit - std::min(limit, usage);
    if (left < limits.available) limits.binding = limit;
    limits.available = std::min(limits.available, left);
    limits.committable = std::min(limits.committable, left);
}

// Finding the groups -----------------------------------------------------------------------------

/// A line of /proc/self/mountinfo (proc(5)); its paths are still escaped.
struct Mount {
    std::string_view root;
    std::string_view point;
    std::string_view filesystem;
    std::string_view options;
};

Mount parse_mount(std::string_view line) noexcept {
    Mount mount;
    for (int skipped = 0; skipped < 3; ++skipped) take_field(line, ' ');
    mount.root = take_field(line, ' ');
    mount.point = take_field(line, ' ');
    // The optional fields, any number of them, end with a dash.
    line.remove_prefix(std::min(line.find(" - "), line.size()));
    for (int skipped = 0; skipped < 2; ++skipped) take_field(line, ' ');
    mount.filesystem = take_field(line, ' ');
    take_field(line, ' ');
    mount.options = take_field(line, ' ');
    return mount;
}

bool shows_memory_of(const Mount& mount, const CgroupVersion& version) noexcept {
    if (mount.filesystem != version.filesystem) return false;
    return version.controller.empty() || list_has(mount.options, version.controller);
}

/// Finds the group of the process in the hierarchy of `version`, in a line
/// "number:controllers:path". The path "/" is returned as "". Returns false if there is no such
/// line.
bool find_group(const char* root, const CgroupVersion& version, Path& group) noexcept {
    group.append(root);
    LineReader lines(LongerPath(group, "/proc/self/cgroup").c_str());
    group.shorten(0);
    std::string_view line;
    while (lines.next(line)) {
        take_field(line, ':');
        const std::string_view controllers = take_field(line, ':');
        const bool is_it = version.controller.empty() ? controllers.empty()
                                                      : list_has(controllers, version.controller);
        if (!is_it || !line.starts_with('/')) continue;
        group.append(line == "/" ? "" : line);
        return true;
    }
    return false;
}

/// Returns whether a path, as seen from the cgroup namespace of the process, leads out of it.
bool leaves_namespace(std::string_view path) noexcept {
    return path == "/.." || path.starts_with("/../");
}

/// Returns the directory of `group` below the mount point; nullopt if the mount does not contain
/// it. In a container the root of the mount is often the container's own group.
std::optional<std::string_view> below_mount(std::string_view mount_root,
                                            std::string_view group) noexcept {
    if (mount_root == "/") mount_root = "";
    const std::string_view below = group.substr(std::min(mount_root.size(), group.size()));
    if (group.starts_with(mount_root) && (below.empty() || below[0] == '/')) {
        return leaves_namespace(below) ? std::nullopt : std::optional(below);
    }
    // The mount's root is above the root of the namespace, and therefore above the process's own
    // group.
    if (leaves_namespace(mount_root)) return "";
    return std::nullopt;
}

/// Does the same for a mount, whose root is still escaped. A function of its own, so that its path
/// leaves the stack, which may be small.
[[gnu::noinline]] std::optional<std::string_view> below_mount(const Mount& mount,
                                                              std::string_view group) noexcept {
    Path root;
    root.append_unescaped(mount.root);
    return below_mount(root.view(), group);
}

/// Applies the limits of the group and of its ancestors up to the mount point.
void apply_mount(const char* root, const CgroupVersion& version, const Mount& mount,
                 std::string_view group, MemoryLimits& limits) noexcept {
    const std::optional<std::string_view> below = below_mount(mount, group);
    if (!below) return;
    Path directory(root);
    directory.append_unescaped(mount.point);
    const std::size_t top = directory.view().size();
    directory.append(*below);
    apply_group(version, directory, limits);
    while (directory.view().size() > top) {
        directory.shorten(directory.view().rfind('/'));
        apply_group(version, directory, limits);
    }
}

void apply_cgroups(const char* root, const CgroupVersion& version, MemoryLimits& limits) noexcept {
    Path group;
    if (!find_group(root, version, group)) return;
    LineReader lines((Path(root) / "/proc/self/mountinfo").c_str());
    std::string_view line;
    while (lines.next(line)) {
        const Mount mount = parse_mount(line);
        if (shows_memory_of(mount, version))
            apply_mount(root, version, mount, group.view(), limits);
    }
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
    for (const CgroupVersion& version : cgroup_versions) apply_cgroups(root, version, limits);
    return limits;
}

}  // namespace tensorpool::platform
