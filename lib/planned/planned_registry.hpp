#pragma once

#include "base/registry.hpp"

namespace tensorpool::detail {
class PlannedState;
}

namespace tensorpool::planned {

/// All living planned arenas of the process, so that a fork finds the lock of none of them taken.
base::Registry<detail::PlannedState>& planned_registry() noexcept;

}  // namespace tensorpool::planned
