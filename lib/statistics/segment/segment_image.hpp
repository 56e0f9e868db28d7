#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// The records of a segment that lies at an address, and how many were in use at one moment: so
/// whoever goes through them comes to an end, whatever is written meanwhile.
class SegmentImage {
public:
    SegmentImage() noexcept = default;
    explicit SegmentImage(const void* base) noexcept : base_(static_cast<const std::byte*>(base)) {}

    const SegmentHeader& header() const noexcept {
        return *reinterpret_cast<const SegmentHeader*>(base_);
    }
    /// Takes from the header how much is in use: never more than there are records. Acquire: what a
    /// record held when it came into use is seen.
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
    /// Those in use.
    template <class Record>
    std::span<const Record> records() const noexcept {
        return {records_in<Record>(header()), used_[index_of<Record>]};
    }

private:
    const std::byte* base_ = nullptr;
    std::size_t used_[kind_count] = {};
};

}  // namespace tensorpool::statistics
