#pragma once

#include "base/registry.hpp"

namespace tensorpool::detail {
class PlannedState;
}

namespace tensorpool::planned {

/// Returns the registry of all planned arenas in the process. The fork handlers take the locks of
/// all of them, so that the child finds none locked.
base::Registry<detail::PlannedState>& planned_registry() noexcept;

}  // namespace tensorpool::planned
