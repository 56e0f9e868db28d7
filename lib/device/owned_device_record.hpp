#pragma once

#include <tensorpool/device/backend.hpp>

#include "device/device_table.hpp"
#include "events/recorder_hooks.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::device {

/// The statistics of one allocator and its streams. They are records in the segment, so that other
/// processes read the same words that the owner writes. If the segment is full, they are in memory
/// of this object and are added to `other` from time to time. During its lifetime, snapshots
/// include the allocator, and recorders refer to it by its id. REQUIRES, for all functions but `id`
/// and `statistics`: one thread at a time.
class OwnedDeviceRecord {
public:
    /// Throws std::bad_alloc. `name` is cut to 47 bytes.
    OwnedDeviceRecord(std::string_view name, DeviceStatistics::Kind kind, Device device);
    ~OwnedDeviceRecord();
    OwnedDeviceRecord(const OwnedDeviceRecord&) = delete;
    OwnedDeviceRecord& operator=(const OwnedDeviceRecord&) = delete;

    std::uint64_t id() const noexcept { return record_->id.load(std::memory_order_relaxed); }
    statistics::DeviceTotals& totals() noexcept { return record_->totals; }

    /// Returns a record with counters for one more stream, which is counted in `totals().streams`.
    /// Their address does not change. Throws std::bad_alloc.
    statistics::DeviceStreamRecord& add_stream(StreamHandle stream);
    /// Ends a stream. Its counters continue with the next stream that is added, so that nothing has
    /// to be summed elsewhere or is counted twice.
    void end_stream(statistics::DeviceStreamRecord& stream) noexcept;

    /// Reports a changed capacity, after the totals were updated, to a recorder. Also updates
    /// `other` if there is no record in the segment.
    void note_capacity() noexcept;

    /// Returns the sums of all streams. Takes no lock.
    DeviceStatistics statistics() const noexcept;

private:
    struct Stream;

    Stream& make_stream(std::uint64_t number);
    template <class Function>
    void for_each_stream(Function function) const;

    statistics::OwnedRecord<statistics::DeviceRecord> record_;
    // A list that only grows, so that statistics are read without a lock.
    std::atomic<Stream*> streams_ = nullptr;
    std::uint64_t last_number_ = 0;  // of the stream added last
};

}  // namespace tensorpool::device
