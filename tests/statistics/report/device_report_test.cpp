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

/// One in which every figure has a value of its own.
DeviceStatistics distinct_figures() {
    DeviceStatistics figures;
    std::uint64_t next = 1000;
    // All figures behind the text of the device are words.
    auto* const words = reinterpret_cast<std::uint64_t*>(&figures.id);
    const auto* const end = reinterpret_cast<std::uint64_t*>(&figures + 1);
    for (std::uint64_t* word = words; word != end; ++word) *word = next++;
    return figures;
}

TEST(DeviceToJson, ContainsEveryMetricOnce) {
    DeviceStatistics figures = distinct_figures();
    std::strcpy(figures.name, "a \"b\"");
    std::strcpy(figures.device, "cuda:0");
    const std::optional<Json> read = JsonReader::read(to_json(figures));
    ASSERT_TRUE(read) << to_json(figures);
    const auto& members = read->members;
    EXPECT_EQ(members.at("version").number, DeviceStatistics::current_version);
    EXPECT_EQ(members.at("name").text, "a \"b\"");
    EXPECT_EQ(members.at("kind").text, "caching");
    EXPECT_EQ(members.at("device").text, "cuda:0");
    EXPECT_EQ(members.at("in_use_bytes").number, figures.in_use_bytes);
    EXPECT_EQ(members.at("failures").number, figures.failures);
    std::set<std::uint64_t> shown;
    for (const auto& [name, value] : members) {
        if (value.number >= 1000) shown.insert(value.number);
    }
    const std::uint64_t words = (sizeof figures - offsetof(DeviceStatistics, id)) / 8;
    EXPECT_EQ(shown.size(), words);
    EXPECT_EQ(members.size(), words + 4) << "version, name, kind, device";
}

TEST(DeviceToJson, KindIsAWord) {
    const auto kind_of = [](Kind kind) {
        DeviceStatistics figures;
        figures.kind = kind;
        return JsonReader::read(to_json(figures))->members.at("kind").text;
    };
    EXPECT_EQ(kind_of(Kind::caching), "caching");
    EXPECT_EQ(kind_of(Kind::pinned), "pinned");
    EXPECT_EQ(kind_of(Kind::host), "host");
}

TEST(DeviceToText, ShowsPyTorchNamesInAColumn) {
    DeviceStatistics figures = {.name = "weights", .device = "cuda:0"};
    figures.in_use_bytes = 3 << 20;
    figures.peak_in_use_bytes = 7 << 20;
    figures.requested_in_use_bytes = 2 << 20;
    figures.deferred_bytes = 1 << 20;
    figures.peak_active_bytes = 8 << 20;
    figures.capacity_bytes = 16 << 20;
    figures.peak_capacity_bytes = 32 << 20;
    figures.free_bytes = 12 << 20;
    figures.split_bytes = 2 << 20;
    figures.parked_bytes = 4 << 20;
    figures.slabs = 2;
    figures.free_blocks = 5;
    figures.deferred_blocks = 1;
    figures.streams = 3;
    figures.allocations = 100;
    figures.deallocations = 60;
    figures.requested_bytes = 9 << 20;
    figures.allocated_bytes = 10 << 20;
    figures.deallocated_bytes = 7 << 20;
    figures.parked_hits = 75;
    figures.free_hits = 20;
    figures.growths = 5;
    figures.grown_bytes = 48 << 20;
    figures.give_backs = 1;
    figures.given_back_bytes = 32 << 20;
    figures.cross_stream_uses = 6;
    figures.events = 7;
    figures.limit_bytes = 64 << 20;
    figures.failures = 2;
    EXPECT_EQ(to_text(figures),
              "tensorpool: caching allocator 'weights' of cuda:0\n"
              "  ours            PyTorch                    now      peak  allocated      freed\n"
              "  in use          allocated_bytes          3 MiB     7 MiB     10 MiB      7 MiB\n"
              "  in use, blocks  allocation                  40                  100         60\n"
              "  asked for       requested_bytes          2 MiB                9 MiB           \n"
              "  + deferred      active_bytes             4 MiB     8 MiB                      \n"
              "  capacity        reserved_bytes          16 MiB    32 MiB     48 MiB     32 MiB\n"
              "  slabs           segment                      2                                \n"
              "  split           inactive_split_bytes     2 MiB                                \n"
              "  free      8 MiB in 5 runs, 4 MiB parked; 1 MiB deferred in 1 blocks\n"
              "  served    75.0 % by parked blocks, 20.0 % by free runs\n"
              "  device    grew 5 times, gave back 1 times, waited 0 times\n"
              "  streams   3, 6 uses across them, 7 events\n"
              "  limit     64 MiB, gives back from none\n"
              "  pressed   0 requests waited for memory, 2 failed\n");
}

TEST(DeviceToText, LinesOfLargestValuesFitAHundredColumns) {
    DeviceStatistics figures = distinct_figures();
    figures.in_use_bytes = figures.capacity_bytes = UINT64_MAX;
    figures.allocations = 999'999'999'999'999;
    std::istringstream lines(to_text(figures));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(DeviceToText, UnusedAllocatorShowsNeitherLimitNorPressure) {
    const std::string text = to_text(DeviceStatistics());
    for (const char* word : {"limit", "pressed", "nan"}) {
        EXPECT_EQ(text.find(word), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace tensorpool
