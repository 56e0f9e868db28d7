#include "serve/statistics_site.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/serve/events.hpp"
#include "tools/serve/made_up_processes.hpp"

namespace tensorpool::command::serve {
namespace {

using testing::at_second;
using testing::Event;
using testing::events_in;
using testing::MadeUpProcesses;
using testing::names_in;
using testing::set_time;
using Names = std::vector<std::string>;

class EventStreamTest : public ::testing::Test {
protected:
    EventStreamTest() {
        processes.add(7).entries = {{.number = 1, .name = "one"}, {.number = 2, .name = "two"}};
        round(0);
    }
    void round(double seconds) {
        for (auto& [process, made_up] : processes.all) set_time(made_up.snapshot, seconds);
        watcher.round(at_second(seconds));
    }
    Names next() { return names_in(stream.next()); }

    MadeUpProcesses processes;
    Watcher watcher{processes};
    EventStream stream{watcher, 7};
};

TEST_F(EventStreamTest, BeginsWithTheHistoryThenTheSnapshot) {
    EXPECT_EQ(next(), (Names{"history", "snapshot", "timeline", "processes"}));
}

TEST_F(EventStreamTest, IsSilentUntilTheNextRound) {
    next();
    EXPECT_EQ(stream.next(), "");
    round(1);
    EXPECT_EQ(next(), Names{"snapshot"});
    EXPECT_EQ(stream.next(), "");
}

TEST_F(EventStreamTest, SendsEntriesOnce) {
    const auto first = events_in(stream.next()).at(2).data.at("entries");
    ASSERT_EQ(first.size(), 2u);
    processes.all[7].entries.push_back({.number = 3, .name = "three"});
    round(1);
    const auto events = events_in(stream.next());
    EXPECT_EQ(events.at(1).name, "timeline");
    ASSERT_EQ(events.at(1).data.at("entries").size(), 1u);
    EXPECT_EQ(events.at(1).data.at("entries")[0].at("name"), "three");
    EXPECT_EQ(events.at(1).data.at("lost"), 0);
}

TEST_F(EventStreamTest, SendsTheEndOfTheProcessOnce) {
    next();
    processes.all[7].running = false;
    round(1);
    const auto events = events_in(stream.next());
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].name, "ended");
    EXPECT_EQ(events[0].data.at("time"), 1'800'000'001);
    EXPECT_EQ(events[1].name, "processes");
    EXPECT_EQ(events[1].data[0].at("ended"), true);
    round(2);
    EXPECT_EQ(stream.next(), "");
}

TEST_F(EventStreamTest, SendsTheHistoryOfAnEndedProcess) {
    round(1);
    processes.end_all();
    round(2);
    EXPECT_EQ(next(), (Names{"history", "snapshot", "timeline", "ended", "processes"}));
}

TEST_F(EventStreamTest, SendsChangesOfTheList) {
    next();
    processes.add(9);
    round(1);
    EXPECT_EQ(next(), (Names{"snapshot", "processes"}));
}

TEST_F(EventStreamTest, BeginsAgainWhenTheProcessIdIsReused) {
    next();
    processes.all[7].running = false;
    round(1);
    next();
    processes.all[7].running = true;
    round(2);
    EXPECT_EQ(next(), (Names{"history", "snapshot", "timeline", "processes"}));
}

TEST_F(EventStreamTest, SendsNoSampleTwice) {
    round(1);
    const auto events = events_in(stream.next());
    const auto times = events.at(0).data.at("pools")[0].at("t");
    EXPECT_EQ(times, nlohmann::json::array({1'800'000'000.0}));
    EXPECT_EQ(events.at(1).data.at("time"), 1'800'000'001);
}

TEST_F(EventStreamTest, KeepsEachEventsDataInOneLine) {
    processes.all[7].snapshot.pools = {testing::made_up_pool(1, "a\n\nevent: ended\ndata: {}\r")};
    processes.all[7].name = "x\n\ndata: {}\n\n";
    round(1);
    for (const Event& event : events_in(stream.next())) {
        EXPECT_NE(event.name, "ended");
        EXPECT_FALSE(event.data.is_discarded()) << event.name;
    }
}

TEST_F(EventStreamTest, ContinuesAfterTheProcessWasDropped) {
    next();
    processes.end_all();
    round(1);
    next();
    round(1000);
    EXPECT_EQ(next(), Names{"processes"});
}

}  // namespace
}  // namespace tensorpool::command::serve
