#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <tensorpool/statistics.hpp>

#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;

/// Returns statistics in which every value is different.
PoolStatistics distinct_statistics() {
    PoolStatistics statistics;
    std::strcpy(statistics.name, "images");
    std::uint64_t next = 1000;
    // All fields after the name are words.
    auto* const words = reinterpret_cast<std::uint64_t*>(&statistics.id);
    const auto* const end = reinterpret_cast<std::uint64_t*>(&statistics + 1);
    for (std::uint64_t* word = words; word != end; ++word) *word = next++;
    return statistics;
}

PoolStatistics largest_statistics() {
    PoolStatistics statistics;
    std::memset(statistics.name, 'n', sizeof statistics.name - 1);
    auto* const words = reinterpret_cast<std::uint64_t*>(&statistics.id);
    std::fill(words, reinterpret_cast<std::uint64_t*>(&statistics + 1), UINT64_MAX);
    return statistics;
}

/// The statistics of a pool after a year of 300,000 calls a second and one growth a minute, with
/// sizes beyond any machine.
PoolStatistics statistics_of_a_year() {
    PoolStatistics statistics = largest_statistics();
    constexpr std::uint64_t calls = 9'999'999'999'999;
    constexpr std::uint64_t growths = 525'600;
    statistics.allocations = statistics.deallocations = statistics.failures = calls;
    statistics.growths = statistics.give_backs = growths;
    for (BucketStatistics& bucket : statistics.buckets) bucket.allocations = calls;
    statistics.large.allocations = calls;
    return statistics;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

TEST(ToJson, ContainsEveryMetricOnce) {
    const PoolStatistics statistics = distinct_statistics();
    const std::optional<Json> read = JsonReader::read(to_json(statistics));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->members.at("version").number, PoolStatistics::current_version);
    EXPECT_EQ(read->members.at("name").text, "images");
    EXPECT_EQ(read->members.at("in_use_bytes").number, statistics.in_use_bytes);
    EXPECT_EQ(read->members.at("threads").number, statistics.threads);
    EXPECT_EQ(read->members.at("buckets").elements.size(), detail::bucket_count);

    // The printed values of all words are those of the statistics, in any order.
    std::vector<std::uint64_t> shown;
    const auto collect = [&](const Json& object) {
        for (const auto& [name, value] : object.members) {
            if (name != "version" && name != "name" && name != "buckets" && name != "large") {
                if (value.elements.empty()) shown.push_back(value.number);
                for (const Json& element : value.elements) shown.push_back(element.number);
            }
        }
    };
    collect(*read);
    for (const Json& bucket : read->members.at("buckets").elements) collect(bucket);
    collect(read->members.at("large"));
    std::sort(shown.begin(), shown.end());
    std::vector<std::uint64_t> expected(shown.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 1000 + i;
    EXPECT_EQ(shown, expected);
    const auto words = (reinterpret_cast<const char*>(&statistics + 1) -
                        reinterpret_cast<const char*>(&statistics.id)) /
                       8;
    EXPECT_EQ(shown.size(), static_cast<std::size_t>(words));
}

TEST(ToJson, BucketsAndLargeBlocksHaveFieldNames) {
    const PoolStatistics statistics = distinct_statistics();
    const Json read = JsonReader::read(to_json(statistics)).value();
    const Json& bucket = read.members.at("buckets").elements.at(3);
    EXPECT_EQ(bucket.members.at("block_bytes").number, statistics.buckets[3].block_bytes);
    EXPECT_EQ(bucket.members.at("depot_hits").number, statistics.buckets[3].depot_hits);
    EXPECT_EQ(bucket.members.at("parked_bytes").number, statistics.buckets[3].parked_bytes);
    const Json& large = read.members.at("large");
    EXPECT_EQ(large.members.at("cached_bytes").number, statistics.large.cached_bytes);
    EXPECT_EQ(large.members.at("cache_misses").number, statistics.large.cache_misses);
}

TEST(ToJson, EscapesQuotesBackslashesAndControlCharacters) {
    PoolStatistics statistics;
    const std::string name = "a\"b\\c\nd\te\x01\x1f/";
    std::strcpy(statistics.name, name.c_str());
    const std::optional<Json> read = JsonReader::read(to_json(statistics));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->members.at("name").text, name);
}

TEST(ToJson, KeepsOtherScripts) {
    PoolStatistics statistics;
    std::strcpy(statistics.name, "größe 張量");
    EXPECT_EQ(JsonReader::read(to_json(statistics))->members.at("name").text, "größe 張量");
}

TEST(ToJson, ReplacesInvalidUtf8) {
    const auto name_of = [](const char* name) {
        PoolStatistics statistics;
        std::strcpy(statistics.name, name);
        return JsonReader::read(to_json(statistics))->members.at("name").text;
    };
    EXPECT_EQ(name_of("gr\xc3\xb6\xc3"), "grö\uFFFD") << "a name cut within a character";
    EXPECT_EQ(name_of("\xff latin \xf6!"), "\uFFFD latin \uFFFD!");
    EXPECT_EQ(name_of("\xc0\xaf"), "\uFFFD\uFFFD") << "an overlong encoding";
    EXPECT_EQ(name_of("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "half of a surrogate pair";
    EXPECT_EQ(name_of("\xe5\xbc|"), "\uFFFD\uFFFD|");
    EXPECT_EQ(name_of("\xf0\x9f\x98\x80"), "\U0001F600");
    EXPECT_EQ(name_of("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "beyond Unicode";
}

TEST(ToJson, LargestValuesAreExact) {
    const Json read = JsonReader::read(to_json(largest_statistics())).value();
    EXPECT_EQ(read.members.at("allocated_bytes").number, UINT64_MAX);
    EXPECT_EQ(read.members.at("large").members.at("in_use_bytes").number, UINT64_MAX);
}

TEST(ToText, UnusedPoolHasNoTable) {
    PoolStatistics statistics;
    std::strcpy(statistics.name, "idle");
    const std::string text = to_text(statistics);
    EXPECT_TRUE(text.starts_with("tensorpool: pool 'idle'\n")) << text;
    EXPECT_TRUE(text.ends_with("\n")) << text;
    EXPECT_EQ(text.find("rounding\n"), std::string::npos) << "no table in\n" << text;
    EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    EXPECT_EQ(text.find("limit"), std::string::npos) << text;
    EXPECT_EQ(text.find("lost"), std::string::npos) << text;
}

TEST(ToText, ShowsValuesWithUnits) {
    PoolStatistics statistics;
    std::strcpy(statistics.name, "images");
    statistics.in_use_bytes = 3 << 20;
    statistics.capacity_bytes = 4 << 20;
    statistics.limit_bytes = 64 << 20;
    statistics.lost_bytes = 5 << 10;
    statistics.allocations = 200;
    statistics.cache_hits = 150;
    statistics.requested_bytes = 1000;
    statistics.allocated_bytes = 1125;
    statistics.failures = 17;
    statistics.record_bytes = 48 << 10;
    const std::string text = to_text(statistics);
    for (const char* part : {"3 MiB of 4 MiB committed (75.0 %)", "200 allocations", "17 failures",
                             "75.0 % from caches", "+12.5 % by rounding", "records take 48 KiB",
                             "limit     64 MiB", "lost      5 KiB"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    }
}

TEST(ToText, HasLineForEachUsedBucketAndLargeBlocks) {
    PoolStatistics statistics;
    statistics.allocations = 3;
    statistics.buckets[2] = {.block_bytes = 256,
                             .in_use_bytes = 512,
                             .parked_bytes = 0,
                             .capacity_bytes = 65536,
                             .allocations = 40,
                             .deallocations = 38,
                             .requested_bytes = 5120,
                             .allocated_bytes = 10240,
                             .cache_hits = 10,
                             .cache_misses = 30,
                             .depot_hits = 0,
                             .system_misses = 0,
                             .depot_bytes = 0};
    statistics.large.allocations = 7;
    statistics.large.cached_bytes = 3 << 20;
    const std::vector<std::string> lines = lines_of(to_text(statistics));
    ASSERT_GE(lines.size(), 3U);
    EXPECT_EQ(lines[lines.size() - 2],
              "  256 B          512 B   63.5 KiB            40   25.0 %   100.0 %");
    EXPECT_EQ(lines.back().substr(0, 34), "  larger           0 B      3 MiB ");
}

TEST(ToText, LinesOfLargeValuesFitAHundredColumns) {
    for (const PoolStatistics& statistics :
         {PoolStatistics(), distinct_statistics(), statistics_of_a_year()}) {
        for (const std::string& line : lines_of(to_text(statistics))) {
            EXPECT_LE(line.size(), 100U) << line;
        }
    }
}

// A snapshot taken during a call may count a request whose block it did not count yet.
TEST(ToText, ShowsNoWasteIfRequestedExceedsAllocated) {
    PoolStatistics statistics;
    statistics.allocations = statistics.buckets[0].allocations = 2;
    statistics.requested_bytes = statistics.buckets[0].requested_bytes = 129;
    statistics.allocated_bytes = statistics.buckets[0].allocated_bytes = 128;
    const std::string text = to_text(statistics);
    EXPECT_NE(text.find("(+0.0 % by rounding)"), std::string::npos) << text;
    for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), 100U) << line;
}

}  // namespace
}  // namespace tensorpool
