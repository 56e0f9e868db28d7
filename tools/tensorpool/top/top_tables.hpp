#pragma once

/// @file
/// The table of each view of `top`.

#include "common/table.hpp"
#include "common/units.hpp"
#include "top/top_data.hpp"
#include "top/top_state.hpp"

namespace tensorpool::command {

/// Sorted as the state says; empty where nothing is chosen.
Table table_of(const TopData& data, const TopState& state);

// Each on its own, in the order of the snapshot.
Table processes_table(const TopData& data, Sizes sizes);
Table pools_table(const TopData& data, Sizes sizes);
/// Of the pool of this number; 0: of all, added up.
Table buckets_table(const TopData& data, std::uint64_t pool, Sizes sizes);
Table scopes_table(const TopData& data, Sizes sizes);
/// Of the pool of this number; 0: of all.
Table threads_table(const TopData& data, std::uint64_t pool, Sizes sizes);
Table arenas_table(const TopData& data, Sizes sizes);
Table planned_table(const TopData& data, Sizes sizes);
Table devices_table(const TopData& data, Sizes sizes);
/// Of the allocator of this number: PyTorch's words in a column beside ours.
Table device_table(const TopData& data, std::uint64_t device, Sizes sizes);
/// The newest first.
Table events_table(const TopData& data, Sizes sizes);

}  // namespace tensorpool::command
