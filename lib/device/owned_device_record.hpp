#pragma once

#include <tensorpool/device/backend.hpp>

#include "device/device_table.hpp"
#include "events/recorder_hooks.hpp"
#include "statistics/records/record_values.hpp"
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
    OwnedDeviceRecord(std::string_view name, DeviceStatistics::Kind kind, Device device)
        : record_(
              statistics::OwnedRecord<statistics::DeviceRecord>(name, [&](statistics::DeviceRecord&
                                                                              made) {
                  made.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
                  statistics::store_text(made.device, to_string(device));
              }).or_throw()) {
        events::look_for_recorder();  // because the first allocations may take only the fast path
        events::name_source(TraceSource::device, id(), name.substr(0, statistics::Name::bytes - 1));
    }
    // If the allocator has no record in the segment, its streams have none either and are not
    // counted.
    ~OwnedDeviceRecord() {
        events::record(TraceAction::gone, id(), nullptr, 0);
        for (Stream* stream = streams_.load(std::memory_order_relaxed); stream != nullptr;) {
            if (stream->in_segment != nullptr) {
                statistics::segment().remove(*stream->in_segment);
            } else if (record_.is_in_segment()) {
                statistics::segment().count_left_out(statistics::DeviceStreamRecord::layout, false);
            }
            delete std::exchange(stream, stream->next);
        }
    }
    OwnedDeviceRecord(const OwnedDeviceRecord&) = delete;
    OwnedDeviceRecord& operator=(const OwnedDeviceRecord&) = delete;

    std::uint64_t id() const noexcept { return record_->id.load(std::memory_order_relaxed); }
    statistics::DeviceTotals& totals() noexcept { return record_->totals; }

    /// Returns a record with counters for one more stream, which is counted in `totals().streams`.
    /// Their address does not change. Throws std::bad_alloc.
    statistics::DeviceStreamRecord& add_stream(StreamHandle handle) {
        const std::uint64_t number = handle == nullptr ? 0 : ++last_number_;
        Stream* stream = nullptr;
        for_each_stream([&](Stream& one) {
            if (!one.is_taken) stream = &one;
        });
        if (stream == nullptr) stream = &make_stream(number);
        stream->is_taken = true;
        stream->record().stream.store(number, std::memory_order_relaxed);
        detail::add(totals().streams, 1);
        return stream->record();
    }
    /// Ends a stream. Its counters continue with the next stream that is added, so that nothing has
    /// to be summed elsewhere or is counted twice.
    void end_stream(statistics::DeviceStreamRecord& record) noexcept {
        detail::add(totals().streams, ~std::uint64_t{0});
        for_each_stream([&](Stream& stream) {
            if (&stream.record() == &record) stream.is_taken = false;
        });
    }

    /// Reports a changed capacity, after the totals were updated, to a recorder. Adds the counters
    /// of streams without a record in the segment to the allocator's record. If the allocator has
    /// no record there either, adds all of it to `other`.
    void note_capacity() noexcept {
        for_each_stream([&](Stream& stream) {
            if (stream.in_segment != nullptr) return;
            stream.folded.fold(statistics::as_words(stream.own.counters),
                               statistics::as_words(record_->left_out));
        });
        record_.fold();
        events::record_capacity(id(), totals().capacity_bytes);
    }

    /// Returns the sums of all streams. Takes no lock.
    DeviceStatistics statistics() const noexcept {
        statistics::RecordValues values(statistics::devices::table);
        for (const auto reading : {statistics::Reading::first, statistics::Reading::second}) {
            for_each_stream([&](Stream& stream) {
                values.add_part(reading, statistics::as_words(stream.record()));
            });
            values.add_own(reading, statistics::as_words(*record_));
        }
        values.finish(statistics::as_words(*record_), false);
        return statistics::with_values(*record_, values.all());
    }

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

    Stream& make_stream(std::uint64_t number) {
        auto* const stream = new Stream;
        if (record_.is_in_segment()) {
            stream->in_segment = statistics::segment().add<statistics::DeviceStreamRecord>(
                "", [&](statistics::DeviceStreamRecord& made) {
                    made.device.store(id(), std::memory_order_relaxed);
                    made.stream.store(number, std::memory_order_relaxed);
                });
            if (stream->in_segment == nullptr)
                statistics::segment().count_left_out(statistics::DeviceStreamRecord::layout, true);
        }
        stream->next = streams_.load(std::memory_order_relaxed);
        streams_.store(stream, std::memory_order_release);
        return *stream;
    }
    /// Calls `function` with each stream. Acquire: pairs with the release in `make_stream`.
    template <class Function>
    void for_each_stream(Function function) const {
        auto* stream = streams_.load(std::memory_order_acquire);
        for (; stream != nullptr; stream = stream->next) function(*stream);
    }

    statistics::OwnedRecord<statistics::DeviceRecord> record_;
    // A list that only grows, so that statistics are read without a lock.
    std::atomic<Stream*> streams_ = nullptr;
    std::uint64_t last_number_ = 0;  // of the stream added last
};

}  // namespace tensorpool::device
