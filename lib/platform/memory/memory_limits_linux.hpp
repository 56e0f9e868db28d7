#pragma once

#include <string_view>

#include "platform/memory/memory_pressure.hpp"
#include "platform/platform.hpp"

namespace tensorpool::platform {

inline constexpr std::size_t no_limit = SIZE_MAX;

/// The limits of the machine and of the process's control groups, in bytes; `no_limit` if no limit
/// can be read.
struct MemoryLimits {
    /// The machine's memory, or the lowest limit of a group if that is lower.
    std::size_t total = no_limit;
    /// The minimum of the machine's available memory and of what each limit leaves.
    std::size_t available = no_limit;
    /// Like `available`, plus the machine's free swap space: what may be committed.
    std::size_t committable = no_limit;
    /// The limit of the group that leaves the least; `no_limit` if the machine leaves less.
    std::size_t binding = no_limit;
};

/// Reads /proc/meminfo and the limits of the process's control group and of all its mounted
/// ancestors. Control groups of version 1, version 2 or both are supported (kernel:
/// admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). Memory that processes have offered to the
/// kernel (`platform::offer`) is not available before the kernel has taken it. `root` is prepended
/// to each path that is read: "" for the files of the running system.
MemoryLimits read_memory_limits(const char* root) noexcept;

/// Reads the settings in `folder` and returns the value of `folio_sizes`
/// (/sys/kernel/mm/transparent_hugepage; Linux, Documentation/admin-guide/mm/transhuge.rst).
FolioSizes read_folio_sizes(std::string_view folder) noexcept;

/// Does what the function without `root` does. `root` is prepended to each path of a group: "" for
/// the groups of the running system.
PressureEvent open_pressure_event(const char* root) noexcept;

/// Does what the function without `root` does. `root` is prepended to each path that is read: ""
/// for the files of the running system.
MemoryPressure read_memory_pressure(const char* root) noexcept;

}  // namespace tensorpool::platform
