#pragma once

#include <cstdint>

namespace tensorpool::platform {

/// What the system has counted of the lack of memory so far. Only differences mean something.
struct MemoryPressure {
    /// The microseconds in which some thread of the machine, or of the process's control group,
    /// waited for memory (Linux: PSI, accounting/psi.rst).
    std::uint64_t machine_stalled_us = 0;
    std::uint64_t group_stalled_us = 0;
    /// How often a control group of the process met a limit: memory.events of version 2
    /// (admin-guide/cgroup-v2.rst), memory.failcnt of version 1 (cgroup-v1/memory.rst).
    std::uint64_t events = 0;
};

/// Reads what the system has counted. What it does not count is 0.
MemoryPressure read_memory_pressure() noexcept;

}  // namespace tensorpool::platform
