#pragma once

#include <cstdint>
#include <span>

namespace tensorpool::testing {

/// Runs a program on handles of pools, arenas, contexts, a scratch, a planned arena and a device.
/// The first byte selects the checks of all sources, and whether the program uses the planned
/// arena. Each other byte is one choice of the program. Throws std::runtime_error if a source does
/// what it must not do.
void feed_handles(std::span<const std::uint8_t> bytes);

}  // namespace tensorpool::testing
