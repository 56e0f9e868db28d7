#pragma once

/// @file
/// Groups blocks by their source (pool, arena or scratch) or by the scope that requested them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

}  // namespace tensorpool::command::inspect
