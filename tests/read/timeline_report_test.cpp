#include <gtest/gtest.h>

#include <set>
#include <string>

#include <tensorpool/timeline.hpp>

#include "statistics/json.hpp"

namespace tensorpool {
namespace {

TimelineEntry entry() {
    TimelineEntry entry;
    entry.number = 12;
    entry.time_ns = 1'700'000'000'123'456'789;  // 14 November 2023, 22:13:20 UTC
    entry.thread = 4711;
    entry.kind = EntryKind::limit;
    entry.limit = LimitKind::capacity;
    entry.bytes = 4 << 20;
    entry.name = "weights";
    return entry;
}

TEST(TimelineReport, TextShowsTimeKindNameBytesAndLimit) {
    EXPECT_EQ(to_text(entry()), "22:13:20.123  limit      weights  4 MiB  (max_capacity)");
}

TEST(TimelineReport, TextOmitsEmptyFields) {
    TimelineEntry mark = entry();
    mark.kind = EntryKind::mark;
    mark.limit = LimitKind::none;
    mark.bytes = 0;
    EXPECT_EQ(to_text(mark), "22:13:20.123  mark       weights");
}

TEST(TimelineReport, TextContainsNoControlCharacters) {
    TimelineEntry hostile = entry();
    hostile.name = "\x1B[2J\x7F\xC2\x9B\xFF\n\xC3\xA4";
    const std::string text = to_text(hostile);
    EXPECT_EQ(text.find('\x1B'), std::string::npos);
    EXPECT_EQ(text.find('\x7F'), std::string::npos);
    EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos);
    EXPECT_EQ(text.find('\xFF'), std::string::npos);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_NE(text.find("\xC3\xA4"), std::string::npos) << "other characters are kept";
}

TEST(TimelineReport, JsonContainsFieldsByName) {
    const auto json = testing::JsonReader::read(to_json(entry()));
    ASSERT_TRUE(json);
    EXPECT_EQ(json->members.size(), 7U);
    EXPECT_EQ(json->members.at("number").number, 12U);
    EXPECT_EQ(json->members.at("time_ns").number, 1'700'000'000'123'456'789U);
    EXPECT_EQ(json->members.at("thread").number, 4711U);
    EXPECT_EQ(json->members.at("kind").text, "limit");
    EXPECT_EQ(json->members.at("limit").text, "max_capacity");
    EXPECT_EQ(json->members.at("bytes").number, 4U << 20);
    EXPECT_EQ(json->members.at("name").text, "weights");
}

TEST(TimelineReport, EveryKindHasAUniqueWord) {
    std::set<std::string> kinds, limits;
    for (unsigned kind = 1; kind < entry_kind_count; ++kind)
        kinds.insert(to_string(EntryKind(kind)));
    for (unsigned kind = 0; kind < limit_kind_count; ++kind)
        limits.insert(to_string(LimitKind(kind)));
    EXPECT_EQ(kinds.size(), entry_kind_count - 1);
    EXPECT_EQ(limits.size(), limit_kind_count);
    EXPECT_FALSE(kinds.contains("?"));
    EXPECT_FALSE(limits.contains("?"));
    EXPECT_STREQ(to_string(EntryKind{}), "?");
    EXPECT_STREQ(to_string(EntryKind{99}), "?");
    EXPECT_STREQ(to_string(LimitKind::none), "");
}

}  // namespace
}  // namespace tensorpool
