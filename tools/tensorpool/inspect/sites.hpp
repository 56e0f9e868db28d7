#pragma once

/// @file
/// The places in a program's code that asked for blocks, by sampled stacks.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/groups.hpp"
#include "inspect/history.hpp"
#include "inspect/symbols/frame_names.hpp"

namespace tensorpool::command::inspect {

/// A place, and what it had alive: estimated from the samples, each of which stands for as many
/// blocks of its size as were asked for on average until one of them was sampled.
struct Site {
    std::string name;
    double bytes = 0;
    double blocks = 0;
    std::uint64_t samples = 0;
    std::vector<std::string> stack;  ///< of its largest sample, innermost first
};

struct Sites {
    std::vector<Site> largest;  ///< the largest first
    std::uint64_t samples = 0;  ///< of all sites, those left out too
    double bytes = 0;
};

/// Of the blocks that `chosen` chooses; at most `most` of them.
Sites sites_of(const History& history, FrameNames& names, std::size_t most,
               const ChosenLives& chosen);

}  // namespace tensorpool::command::inspect
