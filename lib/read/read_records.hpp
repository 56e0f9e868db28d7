#pragma once

#include "read/segment_view.hpp"

namespace tensorpool::read {

/// The records of one kind, and the number of objects that got none.
struct FoundRecords {
    RecordGroup group;
    std::uint64_t left_out = 0;
};

/// Reads the records of all kinds that the segment describes, in the order of their ids. Counters
/// that are read first are taken from the earlier image. Throws std::bad_alloc.
std::vector<FoundRecords> read_records(SegmentView& view);

/// Makes a record of the values of a kind. Those that the rules derive are added.
RecordGroup::Record make_record(const statistics::RecordTable& table, std::uint64_t id,
                                const char* name, std::span<const std::uint64_t> shown);

}  // namespace tensorpool::read
