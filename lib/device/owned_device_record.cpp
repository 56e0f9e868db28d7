#include "device/owned_device_record.hpp"

#include "events/recorder_hooks.hpp"
#include "events/snapshot_sources.hpp"
#include "statistics/records/record_values.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::device {

using statistics::as_words;
using statistics::DeviceRecord;
using statistics::DeviceStreamCounters;
using statistics::DeviceStreamRecord;
using statistics::DeviceTotals;
using statistics::FoldedWords;
using statistics::OwnedRecord;
using statistics::segment;
using statistics::words_of;

namespace {

/// A record of counters, used by one stream after another.
struct Stream {
    DeviceStreamRecord* in_segment = nullptr;  // nullptr: `own` is used
    DeviceStreamRecord own = {};
    FoldedWords<words_of<DeviceStreamCounters>> folded;
    bool is_taken = true;
    Stream* next = nullptr;

    DeviceStreamRecord& record() noexcept { return in_segment != nullptr ? *in_segment : own; }
};

}  // namespace

/// Streams are in a list that only grows, so that statistics are read without a lock.
struct OwnedDeviceRecord::State final : events::SnapshotSource {
    State(std::string_view name, DeviceStatistics::Kind kind, Device device);
    ~State();

    void add_to(Snapshot& snapshot) const override { snapshot.devices.push_back(statistics()); }
    Identity identify() const noexcept override { return {TraceSource::device, id, name}; }
    std::size_t capacity() const noexcept override {
        return record->totals.capacity_bytes.load(std::memory_order_relaxed);
    }
    DeviceStatistics statistics() const noexcept;

    Stream* find_ended() const noexcept;
    Stream& make_stream(std::uint64_t number);
    void fold() noexcept;

    /// Calls `function` with each stream. Acquire: pairs with the release in `make_stream`.
    template <class Function>
    void for_each_stream(Function function) const {
        auto* stream = streams.load(std::memory_order_acquire);
        for (; stream != nullptr; stream = stream->next) function(*stream);
    }

    std::string name;
    OwnedRecord<DeviceRecord> record;
    std::uint64_t id;
    std::atomic<Stream*> streams = nullptr;
    std::uint64_t last_number = 0;  // of the stream added last
};

OwnedDeviceRecord::State::State(std::string_view wanted, DeviceStatistics::Kind kind, Device device)
    : name(wanted.substr(0, sizeof DeviceStatistics::name - 1)),
      record(OwnedRecord<DeviceRecord>(name,
                                       [&](DeviceRecord& made) {
                                           made.kind.store(static_cast<std::uint64_t>(kind),
                                                           std::memory_order_relaxed);
                                           statistics::store_text(made.device, to_string(device));
                                       })
                 .or_throw()),
      id(record->id.load(std::memory_order_relaxed)) {}

// If the allocator has no record in the segment, its streams have none either and are not counted.
OwnedDeviceRecord::State::~State() {
    for (Stream* stream = streams.load(std::memory_order_relaxed); stream != nullptr;) {
        if (stream->in_segment != nullptr) {
            segment().remove(*stream->in_segment);
        } else if (record.is_in_segment()) {
            segment().count_left_out<DeviceStreamRecord>(false);
        }
        delete std::exchange(stream, stream->next);
    }
}

DeviceStatistics OwnedDeviceRecord::State::statistics() const noexcept {
    statistics::RecordValues values(statistics::devices::table);
    for (const auto reading : {statistics::Reading::first, statistics::Reading::second}) {
        for_each_stream(
            [&](Stream& stream) { values.add_part(reading, as_words(stream.record())); });
        values.add_own(reading, as_words(*record));
    }
    values.finish(as_words(*record), false);
    return statistics::with_values(*record, values.all());
}

Stream* OwnedDeviceRecord::State::find_ended() const noexcept {
    Stream* found = nullptr;
    for_each_stream([&](Stream& stream) {
        if (!stream.is_taken) found = &stream;
    });
    return found;
}

Stream& OwnedDeviceRecord::State::make_stream(std::uint64_t number) {
    auto* const stream = new Stream;
    if (record.is_in_segment()) {
        stream->in_segment = segment().add<DeviceStreamRecord>("", [&](DeviceStreamRecord& made) {
            made.device.store(id, std::memory_order_relaxed);
            made.stream.store(number, std::memory_order_relaxed);
        });
        if (stream->in_segment == nullptr) segment().count_left_out<DeviceStreamRecord>(true);
    }
    stream->next = streams.load(std::memory_order_relaxed);
    streams.store(stream, std::memory_order_release);
    return *stream;
}

// Adds the counters of streams without a record in the segment to the allocator's record. If the
// allocator has no record there either, adds all of it to `other`.
void OwnedDeviceRecord::State::fold() noexcept {
    for_each_stream([&](Stream& stream) {
        if (stream.in_segment != nullptr) return;
        stream.folded.fold(as_words(stream.own.counters), as_words(record->left_out));
    });
    record.fold();
}

OwnedDeviceRecord::OwnedDeviceRecord(std::string_view name, DeviceStatistics::Kind kind,
                                     Device device)
    : state_(std::make_unique<State>(name, kind, device)) {
    events::look_for_recorder();  // because the first allocations may take only the fast path
    events::snapshot_sources().enter(*state_);
}

OwnedDeviceRecord::~OwnedDeviceRecord() {
    events::snapshot_sources().leave(*state_);
}

std::uint64_t OwnedDeviceRecord::id() const noexcept {
    return state_->id;
}

DeviceTotals& OwnedDeviceRecord::totals() noexcept {
    return state_->record->totals;
}

DeviceStreamRecord& OwnedDeviceRecord::add_stream(StreamHandle handle) {
    const std::uint64_t number = handle == nullptr ? 0 : ++state_->last_number;
    Stream* stream = state_->find_ended();
    if (stream == nullptr) stream = &state_->make_stream(number);
    stream->is_taken = true;
    stream->record().stream.store(number, std::memory_order_relaxed);
    detail::add(totals().streams, 1);
    return stream->record();
}

void OwnedDeviceRecord::end_stream(DeviceStreamRecord& record) noexcept {
    detail::add(totals().streams, ~std::uint64_t{0});
    state_->for_each_stream([&](Stream& stream) {
        if (&stream.record() == &record) stream.is_taken = false;
    });
}

void OwnedDeviceRecord::note_capacity() noexcept {
    state_->fold();
    state_->record_capacity();
}

DeviceStatistics OwnedDeviceRecord::statistics() const noexcept {
    return state_->statistics();
}

}  // namespace tensorpool::device
