#pragma once

#include "platform/memory/memory_pressure.hpp"

namespace tensorpool::platform {

/// Does what the function without `root` does. `root` is prepended to each path that is read: ""
/// for the files of the running system.
MemoryPressure read_memory_pressure(const char* root) noexcept;

}  // namespace tensorpool::platform
