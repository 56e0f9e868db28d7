#pragma once

/// @file
/// The texts above and below the tables of `top`.

#include <string>
#include <vector>

#include "top/top_data.hpp"
#include "top/top_screen.hpp"
#include "top/top_state.hpp"

namespace tensorpool::command {

/// Returns the chosen process and its totals, or in the view of all processes the totals of all.
std::vector<ScreenLine> headline(const TopData& data, const TopState& state);

/// Returns notes about the chosen process: that it has ended, and limits of its statistics.
std::vector<std::string> notes_of(const TopData& data);
/// Returns notes about its heap profile.
std::vector<std::string> site_notes(const TopData& data);
/// Returns the call stack of the site with this key, innermost call first; empty if there is none.
std::vector<std::string> stack_lines(const TopData& data, const std::string& key);

std::string unreadable_text(const WatchedProcess& watched);
std::string awaited_text(const TopData& data);
inline constexpr const char* no_process_text =
    "No process with a pool is visible; the first one will be shown here. `tensorpool doctor` "
    "shows possible reasons.";

/// Returns the name of the record whose values are shown.
std::string record_text(const TopData& data, const TopState& state);
/// Returns the name of the pool, or "all pools".
std::string pool_text(const TopData& data, std::uint64_t pool);

}  // namespace tensorpool::command
