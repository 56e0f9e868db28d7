#include "serve/watch/watcher.hpp"

#include <gtest/gtest.h>

#include "tools/serve/made_up_processes.hpp"

namespace tensorpool::command::serve {
namespace {

using testing::at_second;
using testing::MadeUpProcess;
using testing::MadeUpProcesses;
using testing::set_time;

class WatcherTest : public ::testing::Test {
protected:
    void round(double seconds) {
        for (auto& [process, made_up] : processes.all) set_time(made_up.snapshot, seconds);
        watcher.round(at_second(seconds));
    }
    std::optional<ListedProcess> listed(std::uint64_t process) const {
        for (const ListedProcess& of : watcher.processes()) {
            if (of.process == process) return of;
        }
        return std::nullopt;
    }

    MadeUpProcesses processes;
    Watcher watcher{processes};
};

TEST_F(WatcherTest, IsEmptyBeforeTheFirstRound) {
    processes.add(7);
    EXPECT_TRUE(watcher.processes().empty());
    EXPECT_FALSE(watcher.view(7));
}

TEST_F(WatcherTest, ReadsEachProcessOncePerRound) {
    processes.add(7, "train").snapshot.pools[0].allocations = 5;
    round(0);
    processes.all[7].snapshot.pools[0].allocations = 25;
    round(2);
    EXPECT_EQ(processes.all[7].attached, 1);
    EXPECT_EQ(listed(7), (ListedProcess{7, "train", true, "", false}));
    const View view = watcher.view(7).value();
    EXPECT_FALSE(view.ended);
    EXPECT_EQ(view.moment->snapshot().pools[0].allocations, 25u);
    ASSERT_EQ(view.moment->rates().pools.size(), 1u);
    EXPECT_DOUBLE_EQ(view.moment->rates().pools[0].allocations, 10);
}

TEST_F(WatcherTest, HasNoRatesAfterOneSnapshot) {
    processes.add(7);
    round(0);
    EXPECT_EQ(watcher.view(7)->moment->rates().seconds, 0);
    EXPECT_TRUE(watcher.view(7)->moment->rates().pools.empty());
}

TEST_F(WatcherTest, ReportsWhyAProcessCannotBeRead) {
    processes.add(7).problem = "it is another user's; run as root";
    processes.add(8).refusal = "its segment is damaged";
    round(0);
    EXPECT_EQ(listed(7)->problem, "it is another user's; run as root");
    EXPECT_FALSE(listed(8)->readable);
    EXPECT_EQ(listed(8)->problem, "its segment is damaged");
    EXPECT_FALSE(watcher.view(8));
    EXPECT_NE(watcher.why_not(8).find("its segment is damaged"), std::string::npos);
    EXPECT_NE(watcher.why_not(9).find("process 9 has no visible pool"), std::string::npos);
}

TEST_F(WatcherTest, RetriesUnreadableProcesses) {
    processes.add(8).refusal = "not yet";
    round(0);
    processes.all[8].refusal.clear();
    round(1);
    EXPECT_EQ(listed(8)->problem, "");
    EXPECT_TRUE(watcher.view(8));
}

TEST_F(WatcherTest, KeepsAnEndedProcess) {
    processes.add(7);
    processes.all[7].entries = {{.number = 1, .time_ns = 1, .name = "growth of pool"}};
    round(0);
    processes.all[7].running = false;
    round(1);
    EXPECT_TRUE(listed(7)->ended);
    EXPECT_TRUE(watcher.view(7)->ended);
    EXPECT_EQ(watcher.view(7)->ended_unix_ns, at_second(1).unix_ns);
    EXPECT_EQ(watcher.entries_since(7, 0).entries.size(), 1u);
    EXPECT_EQ(watcher.entries_since(7, 1).entries.size(), 0u);
}

TEST_F(WatcherTest, TreatsAProcessMissingFromTheListAsEnded) {
    processes.add(7);
    round(0);
    processes.all[7].listed = false;
    round(1);
    EXPECT_TRUE(listed(7)->ended);
}

TEST_F(WatcherTest, DropsAProcessTenMinutesAfterItsEnd) {
    processes.add(7);
    round(0);
    processes.end_all();
    round(1);
    round(601);
    EXPECT_TRUE(listed(7));
    round(601.5);
    EXPECT_FALSE(listed(7));
    EXPECT_FALSE(watcher.view(7));
    EXPECT_EQ(watcher.history_json(7, at_second(700).steady_ns), "");
}

TEST_F(WatcherTest, KeepsTheLastOfManyEndedProcesses) {
    constexpr std::uint64_t count = 3 * Watcher::remembered_count;
    for (std::uint64_t i = 1; i <= count; ++i) {
        processes.end_all();
        processes.add(i);
        round(static_cast<double>(i) / 100);
    }
    const auto known = watcher.processes();
    EXPECT_EQ(known.size(), Watcher::remembered_count + 1);
    EXPECT_EQ(known.back().process, count);
    EXPECT_EQ(known.front().process, count - Watcher::remembered_count);
}

TEST_F(WatcherTest, BeginsAgainWhenAProcessIdIsReused) {
    processes.add(7, "old");
    round(0);
    processes.all[7].running = false;
    round(1);
    processes.all[7].running = true;
    processes.all[7].name = "new";
    round(2);
    EXPECT_EQ(listed(7), (ListedProcess{7, "new", true, "", false}));
    EXPECT_FALSE(watcher.view(7)->ended);
    EXPECT_EQ(watcher.view(7)->moment->rates().seconds, 0);
}

TEST_F(WatcherTest, KeepsTheHistoryIfTheNextProcessIsUnreadable) {
    processes.add(7, "old");
    round(0);
    processes.all[7].running = false;
    round(1);
    for (const double second : {2.0, 3.0}) round(second);
    processes.all[7].running = true;
    processes.all[7].problem = "it is another user's";
    round(4);
    EXPECT_EQ(listed(7), (ListedProcess{7, "old", true, "", true}));
    EXPECT_EQ(watcher.view(7)->ended_unix_ns, at_second(1).unix_ns);
}

TEST_F(WatcherTest, AttachesAgainWhenAProcessExecutesAnotherProgram) {
    processes.add(7, "shell");
    round(0);
    processes.all[7].name = "train";
    round(1);
    EXPECT_EQ(processes.all[7].attached, 2);
    EXPECT_EQ(listed(7)->name, "train");
}

TEST_F(WatcherTest, OmitsProcessesThatEndedSinceTheRound) {
    processes.add(7);
    processes.add(8);
    round(0);
    processes.all[7].running = false;
    const auto running = watcher.running();
    ASSERT_EQ(running.size(), 1u);
    EXPECT_EQ(running[0]->snapshot().process, 8u);
}

TEST_F(WatcherTest, CountsOnlyChangesOfTheList) {
    processes.add(7);
    round(0);
    const std::uint64_t version = watcher.list_version();
    round(1);
    EXPECT_EQ(watcher.list_version(), version);
    processes.add(8);
    round(2);
    EXPECT_EQ(watcher.list_version(), version + 1);
}

}  // namespace
}  // namespace tensorpool::command::serve
