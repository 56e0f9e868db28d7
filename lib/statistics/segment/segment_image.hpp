#pragma once

#include <algorithm>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// The records of a segment at an address, and how many of each kind were in use at one moment. A
/// loop over the records therefore ends, whatever another process writes to the segment.
class SegmentImage {
public:
    /// The records of one kind. They lie in the segment; a description that does not is empty.
    struct Kind {
        const std::byte* records = nullptr;
        std::size_t record_bytes = 0;
        std::size_t used = 0;
        std::uint64_t left_out = 0;
        std::string_view text;  // another process may change it

        const Counter* record(std::size_t index) const noexcept {
            return reinterpret_cast<const Counter*>(records + index * record_bytes);
        }
    };

    SegmentImage() noexcept = default;
    explicit SegmentImage(const void* base) noexcept : base_(static_cast<const std::byte*>(base)) {}

    const SegmentHeader& header() const noexcept {
        return *reinterpret_cast<const SegmentHeader*>(base_);
    }
    /// Reads from the header how many records are in use, limited to the number of records there
    /// are. Acquire: the contents that a record had when it came into use are visible.
    void count() noexcept {
        kind_count_ = std::min<std::size_t>(load(header().kinds), max_kinds);
        for (std::size_t i = 0; i != kind_count_; ++i) kinds_[i] = read(header().regions[i]);
        for_each_first_kind([this]<class Record>() {
            Kind& kind = kinds_[index_of<Record>];
            kind.records = base_ + offset_of<Record>;
            kind.record_bytes = sizeof(Record);
            kind.used = std::min(kind.used, count_of<Record>);
        });
    }

    std::span<const EntryRecord> timeline() const noexcept {
        return {records_in<EntryRecord>(header()), entry_count};
    }
    /// Returns the records in use of a kind that the reader knows.
    template <class Record>
    std::span<const Record> records() const noexcept {
        std::size_t index = index_of<Record>;
        if constexpr (index_of<Record> == first_kind_count) {
            index = static_cast<std::size_t>(&header().region<Record>() - header().regions);
            if (index >= kind_count_ || kinds_[index].record_bytes != sizeof(Record)) return {};
        }
        return {reinterpret_cast<const Record*>(kinds_[index].records), kinds_[index].used};
    }
    std::span<const Kind> kinds() const noexcept { return {kinds_, kind_count_}; }

private:
    static std::uint64_t load(const Counter& counter) noexcept {
        return counter.load(std::memory_order_acquire);
    }
    static bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t limit) noexcept {
        return offset % alignof(Counter) == 0 && offset <= limit && bytes <= limit - offset;
    }
    Kind read(const Region& region) const noexcept {
        Kind kind;
        const std::uint64_t offset = load(region.offset);
        const std::uint64_t bytes = load(region.record_bytes);
        const std::uint64_t count = load(region.record_count);
        kind.left_out = load(region.left_out);
        const bool is_sane = bytes % alignof(Counter) == 0 && bytes <= segment_bytes &&
                             count <= segment_bytes && fits(offset, bytes * count, segment_bytes);
        if (!is_sane) return kind;
        kind.records = base_ + offset;
        kind.record_bytes = bytes;
        kind.used = static_cast<std::size_t>(std::min(load(region.used), count));
        const std::uint64_t text = load(region.text_offset);
        const std::uint64_t text_bytes = load(region.text_bytes);
        if (fits(text, text_bytes, text_limit)) {
            kind.text = {reinterpret_cast<const char*>(base_ + text),
                         static_cast<std::size_t>(text_bytes)};
        }
        return kind;
    }

    const std::byte* base_ = nullptr;
    std::size_t kind_count_ = 0;
    Kind kinds_[max_kinds] = {};
};

}  // namespace tensorpool::statistics
