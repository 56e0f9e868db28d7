#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include <tensorpool/device_statistics.hpp>

#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;
using Kind = DeviceStatistics::Kind;

/// Returns statistics in which every value is different.
DeviceStatistics distinct_statistics() {
    DeviceStatistics statistics;
    std::uint64_t next = 1000;
    // All fields after the device name are words.
    auto* const words = reinterpret_cast<std::uint64_t*>(&statistics.id);
    const auto* const end = reinterpret_cast<std::uint64_t*>(&statistics + 1);
    for (std::uint64_t* word = words; word != end; ++word) *word = next++;
    return statistics;
}

TEST(DeviceToJson, ContainsEveryMetricOnce) {
    DeviceStatistics statistics = distinct_statistics();
    std::strcpy(statistics.name, "a \"b\"");
    std::strcpy(statistics.device, "cuda:0");
    const std::optional<Json> read = JsonReader::read(to_json(statistics));
    ASSERT_TRUE(read) << to_json(statistics);
    const auto& members = read->members;
    EXPECT_EQ(members.at("version").number, DeviceStatistics::current_version);
    EXPECT_EQ(members.at("name").text, "a \"b\"");
    EXPECT_EQ(members.at("kind").text, "caching");
    EXPECT_EQ(members.at("device").text, "cuda:0");
    EXPECT_EQ(members.at("in_use_bytes").number, statistics.in_use_bytes);
    EXPECT_EQ(members.at("failures").number, statistics.failures);
    std::set<std::uint64_t> shown;
    for (const auto& [name, value] : members) {
        if (value.number >= 1000) shown.insert(value.number);
    }
    const std::uint64_t words = (sizeof statistics - offsetof(DeviceStatistics, id)) / 8;
    EXPECT_EQ(shown.size(), words);
    EXPECT_EQ(members.size(), words + 4) << "version, name, kind, device";
}

TEST(DeviceToJson, KindIsAWord) {
    const auto kind_of = [](Kind kind) {
        DeviceStatistics statistics;
        statistics.kind = kind;
        return JsonReader::read(to_json(statistics))->members.at("kind").text;
    };
    EXPECT_EQ(kind_of(Kind::caching), "caching");
    EXPECT_EQ(kind_of(Kind::pinned), "pinned");
    EXPECT_EQ(kind_of(Kind::host), "host");
}

TEST(DeviceToText, ShowsPyTorchNamesInAColumn) {
    DeviceStatistics statistics = {.name = "weights", .device = "cuda:0"};
    statistics.in_use_bytes = 3 << 20;
    statistics.peak_in_use_bytes = 7 << 20;
    statistics.requested_in_use_bytes = 2 << 20;
    statistics.deferred_bytes = 1 << 20;
    statistics.peak_active_bytes = 8 << 20;
    statistics.capacity_bytes = 16 << 20;
    statistics.peak_capacity_bytes = 32 << 20;
    statistics.free_bytes = 12 << 20;
    statistics.split_bytes = 2 << 20;
    statistics.parked_bytes = 4 << 20;
    statistics.slabs = 2;
    statistics.free_blocks = 5;
    statistics.deferred_blocks = 1;
    statistics.streams = 3;
    statistics.allocations = 100;
    statistics.deallocations = 60;
    statistics.requested_bytes = 9 << 20;
    statistics.allocated_bytes = 10 << 20;
    statistics.deallocated_bytes = 7 << 20;
    statistics.parked_hits = 75;
    statistics.free_hits = 20;
    statistics.growths = 5;
    statistics.grown_bytes = 48 << 20;
    statistics.give_backs = 1;
    statistics.given_back_bytes = 32 << 20;
    statistics.cross_stream_uses = 6;
    statistics.events = 7;
    statistics.limit_bytes = 64 << 20;
    statistics.failures = 2;
    const std::string text = to_text(statistics);
    EXPECT_TRUE(
        text.starts_with("tensorpool: allocators of device memory: 'weights', caching, cuda:0\n"
                         "  in_use_bytes           allocated_bytes.all.current      3 MiB\n"
                         "  peak_in_use_bytes      allocated_bytes.all.peak         7 MiB\n"
                         "  requested_in_use_bytes requested_bytes.all.current      2 MiB\n"))
        << text;
    EXPECT_NE(text.find("\n  parked_bytes                                            4 MiB\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\n  failures               num_ooms                         2\n"),
              std::string::npos)
        << text;
}

TEST(DeviceToText, LinesOfLargestValuesFitAHundredColumns) {
    DeviceStatistics statistics = distinct_statistics();
    statistics.in_use_bytes = statistics.capacity_bytes = UINT64_MAX;
    statistics.allocations = 999'999'999'999'999;
    std::istringstream lines(to_text(statistics));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(DeviceToText, UnusedAllocatorShowsNeitherLimitNorPressure) {
    EXPECT_EQ(to_text(DeviceStatistics()),
              "tensorpool: allocators of device memory: '', caching\n");
}

TEST(DeviceStreamToText, SaysWhatIsHeldAndWhatWaits) {
    DeviceStreamStatistics stream;
    stream.stream = 2;
    stream.held_bytes = 64 << 20;
    stream.used_bytes = 44 << 20;
    stream.parked_bytes = 4 << 20;
    EXPECT_EQ(to_text(stream), "stream 2 holds 64 MiB, of which 40 MiB are in use");
    stream.waiting_bytes = 20 << 20;
    stream.waiting_ns = 5'200'000'000;
    EXPECT_EQ(to_text(stream),
              "stream 2 holds 64 MiB, of which 40 MiB are in use; 20 MiB that were freed have "
              "waited for its work for 5.2 s");
    stream.held_bytes = stream.used_bytes = stream.parked_bytes = stream.stream = 0;
    stream.waiting_ns = 12'000'000;
    EXPECT_EQ(to_text(stream),
              "the default stream: 20 MiB that were freed have waited for its work for 12 ms");
}

TEST(DeviceStreamToText, NamesTheMemoryOfGraphs) {
    DeviceStreamStatistics stream;
    stream.capture = 7;
    stream.held_bytes = stream.used_bytes = 8 << 20;
    EXPECT_EQ(to_text(stream),
              "graphs captured on the default stream hold 8 MiB, of which 8 MiB are in use, until "
              "they are released");
}

TEST(DeviceStreamToJson, HasAllFieldsAndTheSentence) {
    DeviceStreamStatistics stream;
    stream.device = 9;
    stream.held_bytes = 1024;
    EXPECT_EQ(to_json(stream),
              "{\"text\":\"" + to_text(stream) +
                  "\",\"device\":9,\"stream\":0,\"capture\":0,\"held_bytes\":1024,"
                  "\"used_bytes\":0,\"parked_bytes\":0,\"waiting_bytes\":0,\"waiting_ns\":0}");
}

}  // namespace
}  // namespace tensorpool
