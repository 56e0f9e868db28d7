#pragma once

#include <tensorpool/device/backend.hpp>

#include "events/snapshot_sources.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::device {

/// The statistics of one allocator and its streams. They are records in the segment, so that other
/// processes read the same words that the owner writes. If the segment is full, they are in memory
/// of this object and are added to `other` from time to time. During its lifetime, snapshots
/// include the allocator, and recorders refer to it by its id. REQUIRES, for all functions but `id`
/// and `statistics`: one thread at a time.
class OwnedDeviceRecord final : private events::SnapshotSource {
public:
    /// Throws std::bad_alloc. `name` is cut to 47 bytes.
    OwnedDeviceRecord(std::string_view name, DeviceStatistics::Kind kind, Device device);
    ~OwnedDeviceRecord();

    std::uint64_t id() const noexcept { return id_; }
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
    /// A record of counters, used by one stream after another.
    struct Stream {
        statistics::DeviceStreamRecord* in_segment = nullptr;  // nullptr: `own` is used
        statistics::DeviceStreamRecord own = {};
        statistics::FoldedWords<statistics::words_of<statistics::DeviceStreamCounters>> folded;
        bool is_taken = true;
        Stream* next = nullptr;

        statistics::DeviceStreamRecord& record() noexcept {
            return in_segment != nullptr ? *in_segment : own;
        }
    };

    void add_to(Snapshot& snapshot) const override;
    Identity identify() const noexcept override { return {TraceSource::device, id_, name_}; }
    std::size_t capacity() const noexcept override;

    Stream& make_stream(std::uint64_t number);
    /// Calls `function` with each stream. Acquire: pairs with the release in `make_stream`.
    template <class Function>
    void for_each_stream(Function function) const {
        auto* stream = streams_.load(std::memory_order_acquire);
        for (; stream != nullptr; stream = stream->next) function(*stream);
    }

    const std::string name_;
    statistics::OwnedRecord<statistics::DeviceRecord> record_;
    const std::uint64_t id_;
    std::atomic<Stream*> streams_ = nullptr;  // only grows, so statistics are read without a lock
    std::uint64_t last_number_ = 0;           // of the stream added last
};

}  // namespace tensorpool::device
