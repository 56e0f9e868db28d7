#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// The records of a segment at an address, and how many of each kind were in use at one moment. A
/// loop over the records therefore ends, whatever another process writes to the segment.
class SegmentImage {
public:
    SegmentImage() noexcept = default;
    explicit SegmentImage(const void* base) noexcept : base_(static_cast<const std::byte*>(base)) {}

    const SegmentHeader& header() const noexcept {
        return *reinterpret_cast<const SegmentHeader*>(base_);
    }
    /// Reads from the header how many records are in use, limited to the number of records there
    /// are. Acquire: the contents that a record had when it came into use are visible.
    void count() noexcept {
        for_each_kind([this]<class Record>(const RecordKind<Record>& kind) {
            const Counter& used = header().region<Record>().used;
            used_[index_of<Record>] = static_cast<std::size_t>(
                std::min<std::uint64_t>(used.load(std::memory_order_acquire), kind.count));
        });
    }

    std::span<const EntryRecord> timeline() const noexcept {
        return {records_in<EntryRecord>(header()), entry_count};
    }
    /// Returns the records in use.
    template <class Record>
    std::span<const Record> records() const noexcept {
        return {records_in<Record>(header()), used_[index_of<Record>]};
    }

private:
    const std::byte* base_ = nullptr;
    std::size_t used_[kind_count] = {};
};

}  // namespace tensorpool::statistics
