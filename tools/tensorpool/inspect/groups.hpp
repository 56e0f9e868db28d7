#pragma once

/// @file
/// Groups blocks by their source (pool, arena or scratch), by the scope that requested them, or by
/// the call site that sampled stacks show.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/symbols/frame_names.hpp"
#include "formats/trace/history.hpp"

namespace tensorpool::command::inspect {

using trace::BlockFacts;
using trace::History;
using trace::Lifetime;
using trace::Recording;

enum class GroupBy { source, scope };

/// The names of the groups, and the group of each block. Sources of the same name and kind are one
/// group, also across processes.
class Groups {
public:
    Groups(const History& history, GroupBy by);

    std::size_t count() const noexcept { return names_.size(); }
    const std::string& name(std::size_t group) const noexcept { return names_[group]; }
    std::uint32_t of(std::size_t lifetime) const noexcept;

private:
    const History& history_;
    GroupBy by_;
    std::vector<std::string> names_;
    std::vector<std::uint32_t> group_of_source_;
    std::uint32_t before_ = 0;   // by scope: the group of blocks from before the recording
    std::uint32_t outside_ = 0;  // by scope: the group of blocks outside of all scopes
};

/// The blocks of one group at some moment.
struct Share {
    std::string name;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;        ///< requested
    std::uint64_t block_bytes = 0;  ///< including rounding
};

using ChosenLives = std::function<bool(const Lifetime&)>;

/// Returns the share of each group in the blocks for which `chosen` is true, the largest first.
/// Empty groups are left out.
std::vector<Share> shares_of(const History& history, const Groups& groups,
                             const ChosenLives& chosen);
/// Returns whether the block is alive at the end of a process whose recording is complete.
bool is_left(const History& history, const Lifetime& lifetime) noexcept;

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
