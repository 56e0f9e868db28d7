#pragma once

#include "watch/pace.hpp"

namespace tensorpool::watch {

/// Samples take 0.5 % of a thread's time. Time that was not needed is saved for 8 ms of samples.
inline constexpr Terms profile_terms{.share = 0.005,
                                     .first_cost_ns = 4'000,  // perf/results/profile.md
                                     .enough = 50,
                                     .max_saved = 2'000,
                                     .haste = 0};

}  // namespace tensorpool::watch
