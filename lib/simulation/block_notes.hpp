#pragma once

#include <cstddef>

#include <tensorpool/device/backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool::device {

/// Follows an allocator's note of a block, and paints the block if nothing uses it.
void note_block(Simulation& simulation, const BlockNote& note);

/// Fills the first bytes of memory that was just handed out with NaNs, if the options ask for
/// patterns.
void paint_fresh(const SimulationOptions& options, void* memory, std::size_t bytes) noexcept;

}  // namespace tensorpool::device
