// The records of device allocators in the segment, and what a reader finds there.

#include "device/owned_device_record.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "device/device_table.hpp"
#include "statistics/add_records.hpp"
#include "statistics/segment/owned_record.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/segment/segment_image.hpp"
#include "support/child_process.hpp"

namespace tensorpool::device {
namespace {

using statistics::DeviceRecord;
using statistics::DeviceStreamCounters;
using statistics::DeviceStreamRecord;
using statistics::segment;
using testing::holds_in_child;
using Kind = DeviceStatistics::Kind;

constexpr Device cuda_1 = {DeviceType::cuda, 1};

StreamHandle stream_at(std::uintptr_t number) {
    return reinterpret_cast<StreamHandle>(number);
}

/// Returns the segment of this process as a reader sees it.
statistics::SegmentImage image() {
    statistics::SegmentImage image(segment().header());
    image.count();
    return image;
}

const DeviceRecord* record_of(std::uint64_t id) {
    for (const DeviceRecord& record : image().records<statistics::DeviceRecord>()) {
        if (record.id == id) return &record;
    }
    return nullptr;
}

std::vector<const DeviceStreamRecord*> streams_of(std::uint64_t device) {
    std::vector<const DeviceStreamRecord*> found;
    for (const DeviceStreamRecord& record : image().records<statistics::DeviceStreamRecord>()) {
        if (record.id != 0 && record.device == device) found.push_back(&record);
    }
    return found;
}

std::uint64_t devices_left_out() {
    return segment().header()->region<statistics::DeviceRecord>().left_out;
}
std::uint64_t streams_left_out() {
    return segment().header()->region<statistics::DeviceStreamRecord>().left_out;
}

/// Uses up all records for devices during its lifetime.
class NoDeviceRecords {
public:
    NoDeviceRecords() {
        while (auto* const filler = add_device(segment(), "filler", 0, "")) {
            fillers_.push_back(filler);
        }
    }
    ~NoDeviceRecords() {
        for (DeviceRecord* const filler : fillers_) segment().remove(*filler);
    }
    NoDeviceRecords(const NoDeviceRecords&) = delete;
    NoDeviceRecords& operator=(const NoDeviceRecords&) = delete;

private:
    std::vector<DeviceRecord*> fillers_;
};

/// Uses up all records for streams during its lifetime.
class NoStreamRecords {
public:
    NoStreamRecords() {
        DeviceRecord* const device = add_device(segment(), "filler", 0, "");
        while (auto* const filler = add_device_stream(segment(), *device, 0)) {
            fillers_.push_back(filler);
        }
        segment().remove(*device);
    }
    ~NoStreamRecords() {
        for (DeviceStreamRecord* const filler : fillers_) segment().remove(*filler);
    }
    NoStreamRecords(const NoStreamRecords&) = delete;
    NoStreamRecords& operator=(const NoStreamRecords&) = delete;

private:
    std::vector<DeviceStreamRecord*> fillers_;
};

bool other_device_is_empty() {
    const DeviceRecord& other = *segment().other<statistics::DeviceRecord>();
    const auto* const totals = statistics::as_words(other.totals);
    const auto* const left_out = statistics::as_words(other.left_out);
    for (std::size_t i = 0; i < statistics::words_of<statistics::DeviceTotals>; ++i) {
        if (totals[i] != 0) return false;
    }
    for (std::size_t i = 0; i < statistics::words_of<DeviceStreamCounters>; ++i) {
        if (left_out[i] != 0) return false;
    }
    return true;
}

TEST(OwnedDeviceRecord, TakesAndReturnsRecordsOfTheSegment) {
    std::optional<OwnedDeviceRecord> record(std::in_place, "weights", Kind::pinned, cuda_1);
    const std::uint64_t id = record->id();
    EXPECT_NE(id, 0U);
    ASSERT_NE(record_of(id), nullptr);
    EXPECT_EQ(&record_of(id)->totals, &record->totals());
    DeviceStreamCounters& counters = record->add_stream(nullptr).counters;
    ASSERT_EQ(streams_of(id).size(), 1U);
    EXPECT_EQ(&streams_of(id)[0]->counters, &counters);
    const DeviceStatistics statistics = record->statistics();
    EXPECT_EQ(statistics.id, id);
    EXPECT_STREQ(statistics.name, "weights");
    EXPECT_STREQ(statistics.device, "cuda:1");
    EXPECT_EQ(statistics.kind, Kind::pinned);
    record.reset();
    EXPECT_EQ(record_of(id), nullptr);
    EXPECT_TRUE(streams_of(id).empty());
}

TEST(OwnedDeviceRecord, LongNamesAreCut) {
    const OwnedDeviceRecord record(std::string(100, 'x'), Kind::caching, cuda_1);
    EXPECT_EQ(std::string(record.statistics().name), std::string(47, 'x'));
}

TEST(OwnedDeviceRecord, StatisticsAreTheSumOverItsStreams) {
    OwnedDeviceRecord record("sums", Kind::caching, cuda_1);
    record.totals().count_growth(1 << 20);
    DeviceStreamCounters& one = record.add_stream(nullptr).counters;
    DeviceStreamCounters& other = record.add_stream(stream_at(0x1000)).counters;
    detail::add(one.allocated_bytes, 4096);
    detail::add(other.allocated_bytes, 512);
    detail::add(one.deallocated_bytes, 1024);
    const DeviceStatistics statistics = record.statistics();
    EXPECT_EQ(statistics.in_use_bytes, 3584U);
    EXPECT_EQ(statistics.capacity_bytes, 1U << 20);
    EXPECT_EQ(statistics.streams, 2U);
}

TEST(OwnedDeviceRecord, StreamsAreNumberedInOrderFromZeroForTheDefault) {
    OwnedDeviceRecord record("numbers", Kind::caching, cuda_1);
    record.add_stream(stream_at(0x7000));
    record.add_stream(nullptr);
    record.add_stream(stream_at(0x8000));
    std::vector<std::uint64_t> numbers;
    for (const auto* const stream : streams_of(record.id())) numbers.push_back(stream->stream);
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 0, 2}));
}

TEST(OwnedDeviceRecord, CountersOfAnEndedStreamAreReused) {
    OwnedDeviceRecord record("ends", Kind::caching, cuda_1);
    record.totals().count_growth(1 << 20);
    statistics::DeviceStreamRecord& first = record.add_stream(stream_at(0x1000));
    detail::add(first.counters.allocated_bytes, 100);
    record.end_stream(first);
    EXPECT_EQ(record.statistics().streams, 0U);
    EXPECT_EQ(record.statistics().allocated_bytes, 100U) << "nothing is lost";
    statistics::DeviceStreamRecord& second = record.add_stream(stream_at(0x2000));
    EXPECT_EQ(&second, &first);
    EXPECT_EQ(streams_of(record.id()).at(0)->stream, 2U);
    EXPECT_NE(&record.add_stream(stream_at(0x3000)), &first);
}

TEST(OwnedDeviceRecord, IsInSnapshotsDuringItsLifetime) {
    const auto count_named = [](const char* name) {
        unsigned count = 0;
        for (const DeviceStatistics& device : take_snapshot().devices) {
            count += std::string(device.name) == name;
        }
        return count;
    };
    {
        const OwnedDeviceRecord record("in snapshots", Kind::caching, cuda_1);
        EXPECT_EQ(count_named("in snapshots"), 1U);
    }
    EXPECT_EQ(count_named("in snapshots"), 0U);
}

TEST(OwnedDeviceRecord, WithoutARecordIsCountedUnderOther) {
    const NoDeviceRecords no_records;
    const DeviceRecord& other = *segment().other<statistics::DeviceRecord>();
    {
        OwnedDeviceRecord one("one", Kind::caching, cuda_1);
        OwnedDeviceRecord two("two", Kind::caching, cuda_1);
        EXPECT_EQ(devices_left_out(), 2U);
        EXPECT_EQ(record_of(one.id()), nullptr);
        DeviceStreamCounters& counters = one.add_stream(nullptr).counters;
        EXPECT_TRUE(streams_of(one.id()).empty()) << "they have no parent record";
        detail::add(counters.allocated_bytes, 300);
        detail::add(two.add_stream(nullptr).counters.allocated_bytes, 50);
        one.totals().count_growth(4096);
        EXPECT_TRUE(other_device_is_empty()) << "until note_capacity";
        for (int i = 0; i < 2; ++i) one.note_capacity(), two.note_capacity();
        EXPECT_EQ(other.left_out.allocated_bytes, 350U);
        EXPECT_EQ(other.totals.capacity_bytes, 4096U);
        one.totals().count_give_back(4096);
        one.note_capacity();
        EXPECT_EQ(other.totals.capacity_bytes, 0U);
        EXPECT_STREQ(one.statistics().name, "one");
        EXPECT_STREQ(one.statistics().device, "cuda:1");
        EXPECT_EQ(two.statistics().allocated_bytes, 50U) << "each counts for itself";
    }
    EXPECT_TRUE(other_device_is_empty());
    EXPECT_EQ(devices_left_out(), 0U);
}

TEST(OwnedDeviceRecord, StreamsWithoutARecordAreCountedUnderTheAllocator) {
    const NoStreamRecords no_records;
    {
        OwnedDeviceRecord record("crowded", Kind::caching, cuda_1);
        DeviceStreamCounters& counters = record.add_stream(nullptr).counters;
        EXPECT_EQ(streams_left_out(), 1U);
        detail::add(counters.allocated_bytes, 300);
        record.totals().count_growth(4096);
        record.note_capacity();
        record.note_capacity();
        EXPECT_EQ(record_of(record.id())->left_out.allocated_bytes, 300U);
        EXPECT_EQ(record.statistics().in_use_bytes, 300U) << "counted once";
    }
    EXPECT_EQ(streams_left_out(), 0U);
}

TEST(OwnedDeviceRecord, ChildOfAForkStartsWithACopyOfTheCounters) {
    OwnedDeviceRecord record("forked", Kind::caching, cuda_1);
    record.totals().count_growth(8192);
    DeviceStreamCounters& counters = record.add_stream(nullptr).counters;
    detail::add(counters.allocated_bytes, 4096);
    EXPECT_TRUE(holds_in_child([&] {
        if (record.statistics().in_use_bytes != 4096) return false;
        if (record_of(record.id()) == nullptr || streams_of(record.id()).size() != 1) return false;
        detail::add(counters.allocated_bytes, 1000);
        return record.statistics().in_use_bytes == 5096;
    }));
    EXPECT_EQ(record.statistics().in_use_bytes, 4096U);
}

TEST(OwnedDeviceRecord, ChildOfAForkMayDestroyOneWithoutARecord) {
    const NoDeviceRecords no_records;
    auto record = std::make_unique<OwnedDeviceRecord>("apart", Kind::caching, cuda_1);
    record->totals().count_growth(4096);
    record->note_capacity();
    EXPECT_TRUE(holds_in_child([&] {
        if (other_device_is_empty()) return false;
        record.reset();
        return other_device_is_empty() && devices_left_out() == 0;
    }));
    EXPECT_FALSE(other_device_is_empty());
}

}  // namespace
}  // namespace tensorpool::device
