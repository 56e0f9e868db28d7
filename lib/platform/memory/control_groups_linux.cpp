#include "platform/memory/control_groups_linux.hpp"

namespace tensorpool::platform {
namespace {

/// Where one version of control groups is mounted.
struct Hierarchy {
    GroupVersion version;
    std::string_view filesystem;
    /// In the list of a mount's options and of a group's controllers. Version 2 leaves it empty.
    std::string_view controller;
};

constexpr Hierarchy hierarchies[] = {{GroupVersion::one, "cgroup", "memory"},
                                     {GroupVersion::two, "cgroup2", ""}};

bool list_has(std::string_view list, std::string_view item) noexcept {
    while (!list.empty()) {
        if (take_field(list, ',') == item) return true;
    }
    return false;
}

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

bool shows_memory_of(const Mount& mount, const Hierarchy& version) noexcept {
    if (mount.filesystem != version.filesystem) return false;
    return version.controller.empty() || list_has(mount.options, version.controller);
}

/// Finds the group of the process in the hierarchy of `version`, in a line
/// "number:controllers:path". The path "/" is returned as "". Returns false if there is no such
/// line.
bool find_group(const char* root, const Hierarchy& version, Path& group) noexcept {
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

/// Visits the group and its ancestors up to the mount point.
void visit_mount(const char* root, GroupVersion version, const Mount& mount, std::string_view group,
                 VisitGroup visit, void* context) noexcept {
    const std::optional<std::string_view> below = below_mount(mount, group);
    if (!below) return;
    Path directory(root);
    directory.append_unescaped(mount.point);
    const std::size_t top = directory.view().size();
    directory.append(*below);
    visit(context, version, directory);
    while (directory.view().size() > top) {
        directory.shorten(directory.view().rfind('/'));
        visit(context, version, directory);
    }
}

}  // namespace

void visit_memory_groups(const char* root, VisitGroup visit, void* context) noexcept {
    for (const Hierarchy& hierarchy : hierarchies) {
        Path group;
        if (!find_group(root, hierarchy, group)) continue;
        LineReader lines((Path(root) / "/proc/self/mountinfo").c_str());
        std::string_view line;
        while (lines.next(line)) {
            const Mount mount = parse_mount(line);
            if (shows_memory_of(mount, hierarchy))
                visit_mount(root, hierarchy.version, mount, group.view(), visit, context);
        }
    }
}

std::optional<std::size_t> read_number(Path& directory, std::string_view file) noexcept {
    ShortLineReader lines(LongerPath(directory, file).c_str());
    std::string_view line;
    if (!lines.next(line)) return std::nullopt;
    return parse_number(line);
}

std::optional<std::size_t> read_field(Path& directory, std::string_view file,
                                      std::string_view key) noexcept {
    ShortLineReader lines(LongerPath(directory, file).c_str());
    std::string_view line;
    while (lines.next(line)) {
        if (take_field(line, ' ') == key) return parse_number(line);
    }
    return std::nullopt;
}

}  // namespace tensorpool::platform
