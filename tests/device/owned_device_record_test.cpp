// Where the figures of device allocators lie, and what others read there.

#include "device/owned_device_record.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "statistics/add_records.hpp"
#include "statistics/segment/folded_words.hpp"
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

/// The segment of this process as who reads it finds it.
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

/// While it lives, all places of devices are taken.
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

/// While it lives, all places of streams are taken.
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

TEST(OwnedDeviceRecord, TakesPlacesInTheSegmentAndGivesThemBack) {
    std::optional<OwnedDeviceRecord> place(std::in_place, "weights", Kind::pinned, cuda_1);
    const std::uint64_t id = place->id();
    EXPECT_NE(id, 0U);
    ASSERT_NE(record_of(id), nullptr);
    EXPECT_EQ(&record_of(id)->totals, &place->totals());
    DeviceStreamCounters& counters = place->add_stream(nullptr);
    ASSERT_EQ(streams_of(id).size(), 1U);
    EXPECT_EQ(&streams_of(id)[0]->counters, &counters);
    const DeviceStatistics figures = place->figures();
    EXPECT_EQ(figures.id, id);
    EXPECT_STREQ(figures.name, "weights");
    EXPECT_STREQ(figures.device, "cuda:1");
    EXPECT_EQ(figures.kind, Kind::pinned);
    place.reset();
    EXPECT_EQ(record_of(id), nullptr);
    EXPECT_TRUE(streams_of(id).empty());
}

TEST(OwnedDeviceRecord, NamesOfAnyLengthAreCut) {
    const OwnedDeviceRecord place(std::string(100, 'x'), Kind::caching, cuda_1);
    EXPECT_EQ(std::string(place.figures().name), std::string(47, 'x'));
}

TEST(OwnedDeviceRecord, FiguresAreTheSumOverItsStreamsAtOnce) {
    OwnedDeviceRecord place("sums", Kind::caching, cuda_1);
    place.totals().count_growth(1 << 20);
    DeviceStreamCounters& one = place.add_stream(nullptr);
    DeviceStreamCounters& other = place.add_stream(stream_at(0x1000));
    detail::add(one.allocated_bytes, 4096);
    detail::add(other.allocated_bytes, 512);
    detail::add(one.deallocated_bytes, 1024);
    const DeviceStatistics figures = place.figures();
    EXPECT_EQ(figures.in_use_bytes, 3584U);
    EXPECT_EQ(figures.capacity_bytes, 1U << 20);
    EXPECT_EQ(figures.streams, 2U);
}

TEST(OwnedDeviceRecord, StreamsAreNumberedAsTheyCameAndTheDefaultOneIsZero) {
    OwnedDeviceRecord place("numbers", Kind::caching, cuda_1);
    place.add_stream(stream_at(0x7000));
    place.add_stream(nullptr);
    place.add_stream(stream_at(0x8000));
    std::vector<std::uint64_t> numbers;
    for (const auto* const stream : streams_of(place.id())) numbers.push_back(stream->stream);
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 0, 2}));
}

TEST(OwnedDeviceRecord, CountersOfAStreamThatEndedGoOnWithTheNext) {
    OwnedDeviceRecord place("ends", Kind::caching, cuda_1);
    place.totals().count_growth(1 << 20);
    DeviceStreamCounters& first = place.add_stream(stream_at(0x1000));
    detail::add(first.allocated_bytes, 100);
    place.end_stream(first);
    EXPECT_EQ(place.figures().streams, 0U);
    EXPECT_EQ(place.figures().allocated_bytes, 100U) << "nothing is lost meanwhile";
    DeviceStreamCounters& second = place.add_stream(stream_at(0x2000));
    EXPECT_EQ(&second, &first);
    EXPECT_EQ(streams_of(place.id()).at(0)->stream, 2U);
    EXPECT_NE(&place.add_stream(stream_at(0x3000)), &first);
}

TEST(OwnedDeviceRecord, StandsInSnapshotsWhileItLives) {
    const auto count_named = [](const char* name) {
        unsigned count = 0;
        for (const DeviceStatistics& device : take_snapshot().devices) {
            count += std::string(device.name) == name;
        }
        return count;
    };
    {
        const OwnedDeviceRecord place("in snapshots", Kind::caching, cuda_1);
        EXPECT_EQ(count_named("in snapshots"), 1U);
    }
    EXPECT_EQ(count_named("in snapshots"), 0U);
}

TEST(OwnedDeviceRecord, WithoutAPlaceIsAddedUpUnderOther) {
    const NoDeviceRecords no_places;
    const DeviceRecord& other = *segment().other<statistics::DeviceRecord>();
    {
        OwnedDeviceRecord one("one", Kind::caching, cuda_1);
        OwnedDeviceRecord two("two", Kind::caching, cuda_1);
        EXPECT_EQ(devices_left_out(), 2U);
        EXPECT_EQ(record_of(one.id()), nullptr);
        DeviceStreamCounters& counters = one.add_stream(nullptr);
        EXPECT_TRUE(streams_of(one.id()).empty()) << "nobody could add them up";
        detail::add(counters.allocated_bytes, 300);
        detail::add(two.add_stream(nullptr).allocated_bytes, 50);
        one.totals().count_growth(4096);
        EXPECT_TRUE(other_device_is_empty()) << "until they note";
        for (int i = 0; i < 2; ++i) one.note_capacity(), two.note_capacity();
        EXPECT_EQ(other.left_out.allocated_bytes, 350U);
        EXPECT_EQ(other.totals.capacity_bytes, 4096U);
        one.totals().count_give_back(4096);
        one.note_capacity();
        EXPECT_EQ(other.totals.capacity_bytes, 0U);
        EXPECT_STREQ(one.figures().name, "one");
        EXPECT_STREQ(one.figures().device, "cuda:1");
        EXPECT_EQ(two.figures().allocated_bytes, 50U) << "its own figures are its own";
    }
    EXPECT_TRUE(other_device_is_empty());
    EXPECT_EQ(devices_left_out(), 0U);
}

TEST(OwnedDeviceRecord, StreamsWithoutAPlaceAreAddedUpUnderTheAllocator) {
    const NoStreamRecords no_places;
    {
        OwnedDeviceRecord place("crowded", Kind::caching, cuda_1);
        DeviceStreamCounters& counters = place.add_stream(nullptr);
        EXPECT_EQ(streams_left_out(), 1U);
        detail::add(counters.allocated_bytes, 300);
        place.totals().count_growth(4096);
        place.note_capacity();
        place.note_capacity();
        EXPECT_EQ(record_of(place.id())->left_out.allocated_bytes, 300U);
        EXPECT_EQ(place.figures().in_use_bytes, 300U) << "counted once";
    }
    EXPECT_EQ(streams_left_out(), 0U);
}

TEST(OwnedDeviceRecord, ChildOfAForkSeesWhatWasHeldThenAndCountsForItself) {
    OwnedDeviceRecord place("forked", Kind::caching, cuda_1);
    place.totals().count_growth(8192);
    DeviceStreamCounters& counters = place.add_stream(nullptr);
    detail::add(counters.allocated_bytes, 4096);
    EXPECT_TRUE(holds_in_child([&] {
        if (place.figures().in_use_bytes != 4096) return false;
        if (record_of(place.id()) == nullptr || streams_of(place.id()).size() != 1) return false;
        detail::add(counters.allocated_bytes, 1000);
        return place.figures().in_use_bytes == 5096;
    }));
    EXPECT_EQ(place.figures().in_use_bytes, 4096U);
}

TEST(OwnedDeviceRecord, ChildOfAForkMayDestroyOneWithoutAPlace) {
    const NoDeviceRecords no_places;
    auto place = std::make_unique<OwnedDeviceRecord>("apart", Kind::caching, cuda_1);
    place->totals().count_growth(4096);
    place->note_capacity();
    EXPECT_TRUE(holds_in_child([&] {
        if (other_device_is_empty()) return false;
        place.reset();
        return other_device_is_empty() && devices_left_out() == 0;
    }));
    EXPECT_FALSE(other_device_is_empty());
}

}  // namespace
}  // namespace tensorpool::device
