#pragma once

/// @file
/// The call sites that allocated blocks, by sampled stacks.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/groups.hpp"
#include "formats/trace/history.hpp"
#include "formats/symbols/frame_names.hpp"

namespace tensorpool::command::inspect {

using symbols::FrameName;
using symbols::FrameNames;

/// A call site and its blocks alive, estimated from samples. Each sample stands for the average
/// number of requests of its size until one of them is sampled.
struct Site {
    std::string name;
    double bytes = 0;
    double blocks = 0;
    std::uint64_t samples = 0;
    std::vector<std::string> stack;  ///< of its largest sample, innermost first
};

struct Sites {
    std::vector<Site> largest;  ///< the largest first
    std::uint64_t samples = 0;  ///< samples of all sites, including those left out
    double bytes = 0;
};

/// Returns the call sites of the blocks for which `chosen` is true, at most `max_sites` of them.
Sites sites_of(const History& history, FrameNames& names, std::size_t max_sites,
               const ChosenLives& chosen);

}  // namespace tensorpool::command::inspect
