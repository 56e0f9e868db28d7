#pragma once

/// @file
/// How much memory blocks take at a moment.

#include <cstdint>
#include <vector>

#include "inspect/history.hpp"
#include "inspect/pages_in_use.hpp"
#include "inspect/ranges_used.hpp"

namespace tensorpool::command::inspect {

struct Level {
    std::uint64_t blocks = 0;
    std::uint64_t alive_bytes = 0;  ///< asked for: no allocator can do with less
    std::uint64_t block_bytes = 0;  ///< with rounding
    std::uint64_t page_bytes = 0;   ///< of the pages on which any of these blocks lies
    std::uint64_t used_bytes = 0;   ///< of all addresses where any block lay so far
    std::uint64_t held_bytes = 0;   ///< by pools, arenas and scratches; 0 where it is not told
};

/// The level of all processes together, followed step by step.
class LevelMeter {
public:
    explicit LevelMeter(const History& history);

    void begin(std::size_t life);
    void end(std::size_t life);
    void hold(const trace::CapacityChange& change);
    const Level& level() const noexcept { return level_; }
    const std::vector<RangesUsed>& used() const noexcept { return used_; }  ///< by each process

private:
    Range place_of(std::size_t life) const;
    void change_pages(std::size_t life, bool added);

    const History& history_;
    Level level_;
    std::vector<PagesInUse> pages_;
    std::vector<RangesUsed> used_;
    std::vector<std::uint64_t> held_;  // by each source
};

}  // namespace tensorpool::command::inspect
