#include "device/owned_device_record.hpp"

#include "events/recorder_hooks.hpp"
#include "statistics/sums/device_statistics.hpp"

namespace tensorpool::device {

using statistics::as_words;
using statistics::DeviceRecord;
using statistics::DeviceStreamRecord;
using statistics::segment;

OwnedDeviceRecord::OwnedDeviceRecord(std::string_view name, DeviceStatistics::Kind kind,
                                     Device device)
    : name_(name.substr(0, sizeof DeviceStatistics::name - 1)),
      record_(statistics::OwnedRecord<DeviceRecord>(
                  name_,
                  [&](DeviceRecord& made) {
                      made.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
                      statistics::store_text(made.device, to_string(device));
                  })
                  .or_throw()),
      id_(record_->id.load(std::memory_order_relaxed)) {
    events::look_for_recorder();  // because the first allocations may take only the fast path
    events::snapshot_sources().enter(*this);
}

// If the allocator has no record in the segment, its streams have none either and are not counted.
OwnedDeviceRecord::~OwnedDeviceRecord() {
    events::snapshot_sources().leave(*this);
    for (Stream* stream = streams_.load(std::memory_order_relaxed); stream != nullptr;) {
        if (stream->in_segment != nullptr) {
            segment().remove(*stream->in_segment);
        } else if (record_.is_in_segment()) {
            segment().count_left_out<DeviceStreamRecord>(false);
        }
        delete std::exchange(stream, stream->next);
    }
}

void OwnedDeviceRecord::add_to(Snapshot& snapshot) const {
    snapshot.devices.push_back(statistics());
}

std::size_t OwnedDeviceRecord::capacity() const noexcept {
    return record_->totals.capacity_bytes.load(std::memory_order_relaxed);
}

DeviceStatistics OwnedDeviceRecord::statistics() const noexcept {
    statistics::DeviceSums sums;
    for_each_stream([&](Stream& stream) { sums.add_frees(stream.record().counters); });
    for_each_stream([&](Stream& stream) { sums.add_allocations(stream.record().counters); });
    return sums.with(*record_);
}

OwnedDeviceRecord::Stream& OwnedDeviceRecord::make_stream(std::uint64_t number) {
    auto* const stream = new Stream;
    if (record_.is_in_segment()) {
        stream->in_segment = segment().add<DeviceStreamRecord>("", [&](DeviceStreamRecord& made) {
            made.device.store(id_, std::memory_order_relaxed);
            made.stream.store(number, std::memory_order_relaxed);
        });
        if (stream->in_segment == nullptr) segment().count_left_out<DeviceStreamRecord>(true);
    }
    stream->next = streams_.load(std::memory_order_relaxed);
    streams_.store(stream, std::memory_order_release);
    return *stream;
}

DeviceStreamRecord& OwnedDeviceRecord::add_stream(StreamHandle handle) {
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

void OwnedDeviceRecord::end_stream(DeviceStreamRecord& record) noexcept {
    detail::add(totals().streams, ~std::uint64_t{0});
    for_each_stream([&](Stream& stream) {
        if (&stream.record() == &record) stream.is_taken = false;
    });
}

// Adds the counters of streams without a record in the segment to the allocator's record. If the
// allocator has no record there either, adds all of it to `other`.
void OwnedDeviceRecord::note_capacity() noexcept {
    for_each_stream([&](Stream& stream) {
        if (stream.in_segment != nullptr) return;
        stream.folded.fold(as_words(stream.own.counters), as_words(record_->left_out));
    });
    record_.fold();
    record_capacity();
}

}  // namespace tensorpool::device
