#pragma once

#include <string_view>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::events {

/// Counts a failed check and writes it to the timeline with the name of the pool, arena or scope.
/// After most checks the program then ends. May be called on any thread; takes no lock.
void count_failed_check(statistics::CheckKind kind, std::string_view name) noexcept;

}  // namespace tensorpool::events
