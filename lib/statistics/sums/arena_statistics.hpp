#pragma once

#include <tensorpool/arena_statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// The figures of an arena or a scratch, for itself and for who reads its segment. Whatever the
/// words are, none of these is more than another that contains it.
ArenaStatistics figures_of(const ArenaRecord& arena) noexcept;

}  // namespace tensorpool::statistics
