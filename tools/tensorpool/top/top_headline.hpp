#pragma once

/// @file
/// What `top` says above and below its tables.

#include <string>
#include <vector>

#include "top/top_data.hpp"
#include "top/top_screen.hpp"
#include "top/top_state.hpp"

namespace tensorpool::command {

/// The chosen process and its sums; in the view of all processes, all of them.
std::vector<ScreenLine> headline(const TopData& data, const TopState& state);

/// That the chosen process ended, and what else a person must know of its figures.
std::vector<std::string> notes_of(const TopData& data);

std::string unreadable_text(const WatchedProcess& watched);
std::string awaited_text(const TopData& data);
inline constexpr const char* nobody_text =
    "No process that holds a pool can be seen; the first that does will be shown here. `tensorpool "
    "doctor` tells what hinders.";

/// "all pools", or the pool's name.
std::string device_text(const TopData& data, std::uint64_t device);
std::string pool_text(const TopData& data, std::uint64_t pool);

}  // namespace tensorpool::command
