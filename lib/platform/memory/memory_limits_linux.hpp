#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

inline constexpr std::size_t no_limit = SIZE_MAX;

/// What the machine and the process's control groups allow, in bytes; `no_limit` where nothing that
/// can be read limits.
struct MemoryLimits {
    /// The machine's memory, or the least limit of a group.
    std::size_t total = no_limit;
    /// The least of what the machine has available and what each limit leaves.
    std::size_t available = no_limit;
    /// The same with what the machine has free for swapping: what may be committed.
    std::size_t committable = no_limit;
    /// The limit of the group that leaves the least; `no_limit` where the machine has less.
    std::size_t binding = no_limit;
};

/// Reads /proc/meminfo, and the limits of the process's control group, version 2 or 1 or both, and
/// of all its ancestors that are mounted (kernel: admin-guide/cgroup-v2.rst and
/// cgroup-v1/memory.rst). `root` stands before each path that is read: "" for the system's own
/// files.
MemoryLimits read_memory_limits(const char* root) noexcept;

}  // namespace tensorpool::platform
