#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <tensorpool/record_group.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_image.hpp"

namespace tensorpool::read {

/// The records of one kind, and the number of objects that got none.
struct FoundRecords {
    RecordGroup group;
    std::uint64_t left_out = 0;
};

/// Returns the table of a kind, by the index of its region; nullptr if there is none.
using TableOf = std::function<std::shared_ptr<const statistics::RecordTable>(std::size_t kind)>;

/// Reads the records of all kinds that the segment describes, in the order of their ids. Counters
/// that are read first are taken from the earlier image. Throws std::bad_alloc.
std::vector<FoundRecords> read_records(const statistics::SegmentImage& earlier,
                                       const statistics::SegmentImage& later,
                                       const TableOf& table_of);
/// Reads the records of this process. Throws std::bad_alloc.
std::vector<FoundRecords> read_own_records();

/// Makes a record of the values of a kind. Those that the rules derive are added.
RecordGroup::Record make_record(const statistics::RecordTable& table, std::uint64_t id,
                                const char* name, std::span<const std::uint64_t> shown);

}  // namespace tensorpool::read
