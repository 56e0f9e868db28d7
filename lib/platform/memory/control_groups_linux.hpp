#pragma once

#include <cstdint>

#include "platform/files/system_files_linux.hpp"

namespace tensorpool::platform {

/// The versions of control groups (kernel: admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst).
enum class GroupVersion : std::uint8_t { one, two };

using VisitGroup = void (*)(void* context, GroupVersion version, Path& directory) noexcept;
void visit_memory_groups(const char* root, VisitGroup visit, void* context) noexcept;

/// Calls `function(version, directory)` for the group of the process that has its memory, and for
/// all its mounted ancestors, of version 1, version 2 or both. `root` is prepended to each path
/// that is read: "" for the files of the running system. The function may append to the directory
/// and must shorten it again.
template <class Function>
void for_each_memory_group(const char* root, Function function) noexcept {
    visit_memory_groups(
        root,
        [](void* context, GroupVersion version, Path& directory) noexcept {
            (*static_cast<Function*>(context))(version, directory);
        },
        &function);
}

// Files of a group. `directory` is the same again after each call.
/// Returns the number in the first line.
std::optional<std::size_t> read_number(Path& directory, std::string_view file) noexcept;
/// Returns the number in the line that begins with `key` and a space.
std::optional<std::size_t> read_field(Path& directory, std::string_view file,
                                      std::string_view key) noexcept;

}  // namespace tensorpool::platform
