#pragma once

#include "platform/memory/memory_pressure.hpp"

namespace tensorpool::platform {

/// Does what the function without `root` does. `root` is prepended to each path of a group: "" for
/// the groups of the running system.
PressureEvent open_pressure_event(const char* root) noexcept;

/// Does what the function without `root` does. `root` is prepended to each path that is read: ""
/// for the files of the running system.
MemoryPressure read_memory_pressure(const char* root) noexcept;

}  // namespace tensorpool::platform
