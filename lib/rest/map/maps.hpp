#pragma once

namespace tensorpool::stashing {

class MapState;

/// Adds a map to the list of those that a fork locks. Throws std::bad_alloc if the system has no
/// memory for fork handlers.
void enter_map(MapState& map);
void leave_map(MapState& map) noexcept;

}  // namespace tensorpool::stashing
