#include "statistics/records/record_values.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "device/device_table.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::statistics {
namespace {

DeviceStatistics statistics_of(const DeviceRecord& device,
                               std::initializer_list<const DeviceStreamCounters*> streams) {
    RecordValues values(devices::table);
    for (const Reading reading : {Reading::first, Reading::second}) {
        for (const auto* const stream : streams) {
            // The counters are at the beginning of the record of a stream.
            values.add_part(reading, as_words(*stream));
        }
        values.add_own(reading, as_words(device));
    }
    values.finish(as_words(device), false);
    return with_values(device, values.all());
}

DeviceStatistics statistics_of(const DeviceRecord& device, const DeviceStreamCounters& stream) {
    return statistics_of(device, {&stream});
}

TEST(StatisticsOfDevice, SumStreams) {
    DeviceRecord device = {};
    device.totals.capacity_bytes = 1 << 20;
    device.totals.deferred_bytes = 4096;
    DeviceStreamCounters one = {};
    one.allocations = 5;
    one.requested_bytes = 900;
    one.allocated_bytes = 1280;
    one.parked_hits = 2;
    one.parked_bytes = 512;
    DeviceStreamCounters other = {};
    other.allocations = 1;
    other.allocated_bytes = 256;
    other.requested_bytes = 200;
    other.deallocations = 3;
    other.deallocated_bytes = 768;
    other.deallocated_requested_bytes = 600;
    const DeviceStatistics statistics = statistics_of(device, {&one, &other});
    EXPECT_EQ(statistics.allocations, 6U);
    EXPECT_EQ(statistics.deallocations, 3U);
    EXPECT_EQ(statistics.in_use_bytes, 768U);
    EXPECT_EQ(statistics.requested_in_use_bytes, 500U);
    EXPECT_EQ(statistics.parked_hits, 2U);
    EXPECT_EQ(statistics.parked_bytes, 512U);
    EXPECT_EQ(statistics.deferred_bytes, 4096U);
    EXPECT_EQ(statistics.free_bytes, (1U << 20) - 4096 - 768);
}

TEST(StatisticsOfDevice, PeaksAreAtLeastCurrentValues) {
    DeviceRecord device = {};
    device.totals.capacity_bytes = 8192;
    device.totals.deferred_bytes = 1000;
    DeviceStreamCounters stream = {};
    stream.allocated_bytes = 3000;
    const DeviceStatistics statistics = statistics_of(device, stream);
    EXPECT_EQ(statistics.peak_in_use_bytes, 3000U);
    EXPECT_EQ(statistics.peak_active_bytes, 4000U);
    EXPECT_EQ(statistics.peak_capacity_bytes, 8192U);
}

TEST(StatisticsOfDevice, FreesReadBeforeAllocationsAreNotInUse) {
    DeviceStreamCounters stream = {};
    stream.allocations = 1;
    stream.deallocations = 2;
    stream.allocated_bytes = 100;
    stream.deallocated_bytes = 200;
    const DeviceStatistics statistics = statistics_of({}, stream);
    EXPECT_EQ(statistics.in_use_bytes, 0U);
    EXPECT_EQ(statistics.deallocations, 1U);
    EXPECT_EQ(statistics.deallocated_bytes, 100U);
}

TEST(StatisticsOfDevice, OverwrittenRecordKeepsPartsWithinWhole) {
    std::mt19937_64 random(5);
    const auto scribble = [&random](Counter* words, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) words[i] = random() >> (random() % 64);
    };
    for (int round = 0; round < 2000; ++round) {
        DeviceRecord device = {};
        DeviceStreamCounters stream = {};
        scribble(as_words(device), words_of<DeviceRecord>);
        scribble(as_words(stream), words_of<DeviceStreamCounters>);
        const DeviceStatistics f = statistics_of(device, stream);
        ASSERT_EQ(f.in_use_bytes + f.deferred_bytes + f.free_bytes, f.capacity_bytes);
        ASSERT_LE(f.requested_in_use_bytes, f.in_use_bytes);
        ASSERT_LE(f.split_bytes, f.free_bytes);
        ASSERT_LE(f.parked_bytes, f.free_bytes);
        ASSERT_LE(f.captured_bytes, f.capacity_bytes);
        ASSERT_LE(f.in_use_bytes, f.peak_in_use_bytes);
        ASSERT_LE(f.peak_in_use_bytes, f.peak_active_bytes);
        ASSERT_LE(f.in_use_bytes + f.deferred_bytes, f.peak_active_bytes);
        ASSERT_LE(f.peak_active_bytes, f.peak_capacity_bytes);
        ASSERT_LE(f.deallocations, f.allocations);
        ASSERT_LE(f.parked_hits, f.allocations);
        ASSERT_LE(static_cast<unsigned>(f.kind), 2U);
        ASSERT_LT(std::strlen(f.name), sizeof f.name);
        ASSERT_LT(std::strlen(f.device), sizeof f.device);
    }
}

}  // namespace
}  // namespace tensorpool::statistics
