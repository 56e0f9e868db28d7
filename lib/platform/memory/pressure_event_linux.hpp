#pragma once

#include "platform/memory/pressure_event.hpp"

namespace tensorpool::platform {

/// Does what the function without `root` does. `root` is prepended to each path of a group: "" for
/// the groups of the running system.
PressureEvent open_pressure_event(const char* root) noexcept;

}  // namespace tensorpool::platform
