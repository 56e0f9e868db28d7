#pragma once

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
    /// Takes from the header how much is in use: never more than there are places.
    void count() noexcept;

    std::span<const EntryRecord> timeline() const noexcept {
        return {at<EntryRecord>(timeline_offset), entry_count};
    }
    std::span<const ScopeRecord> scopes() const noexcept {
        return {at<ScopeRecord>(scopes_offset), scopes_};
    }
    std::span<const PoolRecord> pools() const noexcept {
        return {at<PoolRecord>(pools_offset), pools_};
    }
    std::span<const ArenaRecord> arenas() const noexcept {
        return {at<ArenaRecord>(arenas_offset), arenas_};
    }
    std::span<const DeviceRecord> devices() const noexcept {
        return {at<DeviceRecord>(devices_offset), devices_};
    }
    std::span<const DeviceStreamRecord> device_streams() const noexcept {
        return {at<DeviceStreamRecord>(device_streams_offset), device_streams_};
    }
    std::span<const PlannedRecord> planned() const noexcept {
        return {at<PlannedRecord>(planned_offset), planned_};
    }
    std::span<const SlotRecord> slots() const noexcept {
        return {at<SlotRecord>(slots_offset), slots_};
    }

private:
    template <class Record>
    const Record* at(std::size_t offset) const noexcept {
        return reinterpret_cast<const Record*>(base_ + offset);
    }

    const std::byte* base_ = nullptr;
    std::size_t scopes_ = 0;
    std::size_t pools_ = 0;
    std::size_t arenas_ = 0;
    std::size_t devices_ = 0;
    std::size_t device_streams_ = 0;
    std::size_t planned_ = 0;
    std::size_t slots_ = 0;
};

}  // namespace tensorpool::statistics
