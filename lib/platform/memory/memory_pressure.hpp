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

/// A descriptor by which the system reports that it reclaims memory of the process's control groups
/// with effort. A value. It is never read, so a child of a fork sees the same reports as its
/// parent.
struct PressureEvent {
    int file = -1;
    std::uint64_t id = 0;  // tells the descriptor from others that get its number
};

/// Requests such reports: pressure of level `medium` in the process's group of version 1 or in one
/// of its ancestors, whichever process caused it (Linux: memory.pressure_level and
/// cgroup.event_control of cgroup-v1/memory.rst, mode `local`). The descriptor is closed by exec,
/// does not block, and has a high number, out of the way of the program's own. Its file is -1 if no
/// group is of version 1 or the system refuses.
PressureEvent open_pressure_event() noexcept;
/// Closes the descriptor, unless the program has closed it. This ends the reports.
void close_pressure_event(const PressureEvent& event) noexcept;

/// Returns how many reports there were; 0 if the program has closed the descriptor.
std::uint64_t count_reports(const PressureEvent& event) noexcept;

}  // namespace tensorpool::platform
