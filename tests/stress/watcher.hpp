#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::stress {

struct Round;

/// Trims, reserves and reads statistics of all pools until `done`.
void watch(Round& round, std::uint64_t seed, const std::atomic<bool>& done);

}  // namespace tensorpool::stress
