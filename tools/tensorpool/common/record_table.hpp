#pragma once

/// @file
/// Tables of records of any kind: budgets, arenas, and those that this program does not know.

#include <functional>
#include <span>

#include <tensorpool/record_group.hpp>

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// What earlier snapshots say of the records.
struct RecordHistory {
    std::vector<RecordGroup> before;
    double seconds = 0;  ///< since `before`; 0: there are no rates
    /// The highest value seen of a record, by `record_key`.
    std::function<std::uint64_t(const std::string& key)> highest;
};

/// Identifies a record of a kind, such as "arena 5".
std::string record_key(const std::string& of, std::uint64_t id);

/// One row for each record of the groups of these names, which are of one kind.
Table record_table(const std::vector<RecordGroup>& groups, std::span<const std::string_view> names,
                   Sizes sizes, const RecordHistory& history = {});

/// One row for each value of a record, with PyTorch's names if there are some.
Table details_table(const RecordGroup& group, const RecordGroup::Record& record, Sizes sizes);

/// One row for each record of all groups, with all that its columns say in one.
Table mixed_table(const std::vector<RecordGroup>& groups, Sizes sizes);

}  // namespace tensorpool::command
