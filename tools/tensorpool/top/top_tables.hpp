#pragma once

/// @file
/// The tables of the views of `top`.

#include "top/top_data.hpp"
#include "top/top_state.hpp"

namespace tensorpool::command {

/// Returns the table of the present view, sorted as the state says; empty if no process is chosen.
Table table_of(const TopData& data, const TopState& state);

// The tables of the single views, in the order of the snapshot.
Table processes_table(const TopData& data, Sizes sizes);
/// Shows the pool with this id; 0: the sums over all pools.
Table buckets_table(const TopData& data, std::uint64_t pool, Sizes sizes);
/// The key of a row is the id of the site.
Table sites_table(const TopData& data, Sizes sizes);
/// Shows records of the kind of the view, or all values of the one that is chosen. Budgets are in
/// the order of the tree.
Table records_table(const TopData& data, const TopState& state, Sizes sizes);
/// Returns notes about the heap profile of the chosen process.
std::vector<std::string> site_notes(const TopData& data);
/// Returns the call stack of the site with this key, innermost call first; empty if there is none.
std::vector<std::string> stack_lines(const TopData& data, const std::string& key);
/// Newest event first.
Table events_table(const TopData& data, Sizes sizes);

}  // namespace tensorpool::command
