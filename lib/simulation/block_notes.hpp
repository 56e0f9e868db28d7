#pragma once

#include <cstddef>

#include <tensorpool/device/backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool::device {

/// Records an allocator's note about a block, and paints the block if no queued work uses it.
void note_block(Simulation& simulation, const BlockNote& note);

/// Fills the start of newly allocated memory with NaNs if `fill_patterns` is set.
void paint_fresh(const SimulationOptions& options, void* memory, std::size_t bytes) noexcept;

}  // namespace tensorpool::device
