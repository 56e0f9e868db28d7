#pragma once

#include "base/report_text.hpp"
#include "statistics/records/record_table.hpp"

/// The texts of records, whatever their kind.
namespace tensorpool::read {

using base::json_list;

std::string json_of(const statistics::RecordTable& table, const RecordGroup::Record& record);
/// Returns a report for people: a headline, then a line for each value that is not 0.
std::string report_of(const RecordGroup& group);
/// Returns the members for the shown fields, `"name":value,...`, without braces.
std::string json_members(const statistics::RecordTable& table,
                         std::span<const std::uint64_t> values);

struct Position {
    std::size_t index = 0;
    std::size_t depth = 0;
};

/// Returns the order in which a tree is written: each record is followed by those below it. The
/// numbers of the records ascend. A parent that is not among them, or not older, does not count.
std::vector<Position> tree_of(const RecordGroup& group);

}  // namespace tensorpool::read
