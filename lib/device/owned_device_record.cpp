#include "device/owned_device_record.hpp"

#include "statistics/records/record_values.hpp"

namespace tensorpool::device {

using statistics::as_words;
using statistics::DeviceRecord;
using statistics::DeviceStreamCounters;
using statistics::DeviceStreamRecord;
using statistics::OwnedRecord;
using statistics::segment;

/// A record of counters, used by one stream after another.
struct OwnedDeviceRecord::Stream {
    DeviceStreamRecord* in_segment = nullptr;  // nullptr: `own` is used
    DeviceStreamRecord own = {};
    statistics::FoldedWords<statistics::words_of<DeviceStreamCounters>> folded;
    bool is_taken = true;
    Stream* next = nullptr;

    DeviceStreamRecord& record() noexcept { return in_segment != nullptr ? *in_segment : own; }
};

/// Calls `function` with each stream. Acquire: pairs with the release in `make_stream`.
template <class Function>
void OwnedDeviceRecord::for_each_stream(Function function) const {
    auto* stream = streams_.load(std::memory_order_acquire);
    for (; stream != nullptr; stream = stream->next) function(*stream);
}

OwnedDeviceRecord::OwnedDeviceRecord(std::string_view name, DeviceStatistics::Kind kind,
                                     Device device)
    : record_(OwnedRecord<DeviceRecord>(name, [&](DeviceRecord& made) {
                  made.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
                  statistics::store_text(made.device, to_string(device));
              }).or_throw()) {
    events::look_for_recorder();  // because the first allocations may take only the fast path
    events::name_source(TraceSource::device, id(), name.substr(0, statistics::Name::bytes - 1));
}

// If the allocator has no record in the segment, its streams have none either and are not counted.
OwnedDeviceRecord::~OwnedDeviceRecord() {
    events::record(TraceAction::gone, id(), nullptr, 0);
    for (Stream* stream = streams_.load(std::memory_order_relaxed); stream != nullptr;) {
        if (stream->in_segment != nullptr) {
            segment().remove(*stream->in_segment);
        } else if (record_.is_in_segment()) {
            segment().count_left_out<DeviceStreamRecord>(false);
        }
        delete std::exchange(stream, stream->next);
    }
}

DeviceStatistics OwnedDeviceRecord::statistics() const noexcept {
    statistics::RecordValues values(statistics::devices::table);
    for (const auto reading : {statistics::Reading::first, statistics::Reading::second}) {
        for_each_stream(
            [&](Stream& stream) { values.add_part(reading, as_words(stream.record())); });
        values.add_own(reading, as_words(*record_));
    }
    values.finish(as_words(*record_), false);
    return statistics::with_values(*record_, values.all());
}

OwnedDeviceRecord::Stream& OwnedDeviceRecord::make_stream(std::uint64_t number) {
    auto* const stream = new Stream;
    if (record_.is_in_segment()) {
        stream->in_segment = segment().add<DeviceStreamRecord>("", [&](DeviceStreamRecord& made) {
            made.device.store(id(), std::memory_order_relaxed);
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
    events::record_capacity(id(), totals().capacity_bytes);
}

}  // namespace tensorpool::device
