#pragma once

/// @file
/// Blocks put together by whose they are: by the pool, arena or scratch that they come from, or by
/// the scope that asked for them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "inspect/history.hpp"

namespace tensorpool::command::inspect {

enum class GroupBy { source, scope };

/// A name for each group, and which one a block belongs to. What has the same name and kind is one
/// group, in whichever process.
class Groups {
public:
    Groups(const History& history, GroupBy by);

    std::size_t count() const noexcept { return names_.size(); }
    const std::string& name(std::size_t group) const noexcept { return names_[group]; }
    std::uint32_t of(std::size_t life) const noexcept;

private:
    const History& history_;
    GroupBy by_;
    std::vector<std::string> names_;
    std::vector<std::uint32_t> group_of_source_;
    std::uint32_t before_ = 0;   // of blocks made before the recording, by scope
    std::uint32_t outside_ = 0;  // of all scopes
};

/// What part of some moment a group has.
struct Share {
    std::string name;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;        ///< asked for
    std::uint64_t block_bytes = 0;  ///< with rounding
};

using ChosenLives = std::function<bool(const Life&)>;

/// What each group has of the blocks that `chosen` chooses, the largest first. Groups that have
/// nothing are left out.
std::vector<Share> shares_of(const History& history, const Groups& groups,
                             const ChosenLives& chosen);
/// Alive at the end of a recording that ended in order.
bool is_left(const History& history, const Life& life) noexcept;

}  // namespace tensorpool::command::inspect
