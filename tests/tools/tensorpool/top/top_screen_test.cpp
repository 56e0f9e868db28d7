#include "top/top_screen.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <tensorpool/record_group.hpp>

#include "common/printable.hpp"
#include "tools/profile/made_profile.hpp"
#include "tools/tensorpool/made_up_data.hpp"

namespace tensorpool::command {
namespace {

std::string text_of(const std::vector<ScreenLine>& lines) {
    std::string text;
    for (const ScreenLine& line : lines) text += line.text + '\n';
    return text;
}

TopState in(View view) {
    TopState state;
    state.view = view;
    return state;
}

bool shows(const TopData& data, const TopState& state, const std::string& part,
           ScreenSize size = {}) {
    std::string text = text_of(draw(data, state, size));
    std::ranges::replace(text, '\n', ' ');  // long sentences take several lines
    return text.find(part) != std::string::npos;
}

TEST(TopScreen, FitsAnySize) {
    for (unsigned view = 0; view < view_count; ++view) {
        for (const std::size_t columns : {1, 10, 40, 80, 200}) {
            for (const std::size_t rows : {1, 2, 5, 24, 60}) {
                const auto lines =
                    draw(made_up_data(), in(static_cast<View>(view)), {columns, rows});
                EXPECT_LE(lines.size(), rows);
                for (const ScreenLine& line : lines) EXPECT_LE(columns_of(line.text), columns);
            }
        }
    }
}

TEST(TopScreen, ShowsTheMainColumnsOfPoolsIn80Columns) {
    const std::string text = text_of(draw(made_up_data(), in(View::pools), {80, 24}));
    EXPECT_NE(text.find("train (4711), tensorpool 1.2.3\n"), std::string::npos) << text;
    EXPECT_NE(text.find("in use 116 MiB  highest 116 MiB  capacity 230 MiB  limit none  "
                        "util 50.4%\n"),
              std::string::npos)
        << text;
    EXPECT_NE(
        text.find("NAME           IN USE CAPACITY     PEAK  HIGHEST  UTIL  HITS ALLOC/s FAIL"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("q quit"), std::string::npos);
}

TEST(TopScreen, ShowsTheMainColumnsOfDevicesIn80Columns) {
    TopState state = in(View::devices);
    std::string text = text_of(draw(made_up_data(), state, {80, 24}));
    EXPECT_NE(text.find("DEVICE   IN USE CAPACITY     FREE DEFERRED  HITS ALLOC/s FAIL"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("[a]renas p[l]ans\nDEVICES bud[g]ets resti[n]g [e]vents\n"),
              std::string::npos)
        << text;
    state.record = 5;
    text = text_of(draw(made_up_data(), state, {80, 24}));
    EXPECT_NE(text.find("activations of cuda:0; d for the others"), std::string::npos) << text;
    EXPECT_NE(text.find("reserved_bytes"), std::string::npos) << text;
    text = text_of(draw(made_up_data(), state, {80, 50}));
    EXPECT_NE(text.find("num_ooms"), std::string::npos) << "the whole table: " << text;
    state.record = 77;
    EXPECT_TRUE(shows(made_up_data(), state, "a record that was destroyed; d for the others"));
}

TEST(TopScreen, ShowsTheMainColumnsOfPlannedArenasIn80Columns) {
    const std::string text = text_of(draw(made_up_data(), in(View::planned), {80, 24}));
    EXPECT_NE(text.find("STATE       BOUND     POOL     PLAN ABOVE SERVED MISSED"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("[a]renas PLANS\n[d]evices bud[g]ets resti[n]g [e]vents\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("by PLAN, row 1 of 1"), std::string::npos) << text;
}

TEST(TopScreen, ShowsTheTreeOfBudgetsIn80Columns) {
    TopState state = in(View::budgets);
    state.position().column = 1;
    const std::string text = text_of(draw(made_up_data(), state, {80, 24}));
    EXPECT_NE(text.find("IN USE     HARD SHARE                  SOFT     PEAK REFUSED\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("each below its parent, row 1 of 4"), std::string::npos) << text;
    EXPECT_NE(text.find("  loader        200 MiB  250 MiB 80.0% [########  ]"), std::string::npos)
        << text;
    EXPECT_LT(text.find("  model "), text.find("    request ")) << "the order of the tree";
    EXPECT_LT(text.find("    request "), text.find("  loader "));
}

TEST(TopScreen, ShowsWhatRestsIn80Columns) {
    const std::string text = text_of(draw(made_up_data(), in(View::stashes), {80, 24}));
    EXPECT_NE(text.find("KIND     COUNT   IN MEM  RESTING    TAKES RATIO MISSES IN FILES\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("kv-cache       map         40 96.0 MiB  400 MiB  100 MiB 25.0%    120"),
              std::string::npos)
        << text;
    EXPECT_LT(text.find("kv-cache"), text.find("optimizer"));
    const std::string wide = text_of(draw(made_up_data(), in(View::stashes), {160, 24}));
    EXPECT_NE(wide.find("40.0 MiB      120      1    2.50    0.75 loader"), std::string::npos)
        << wide;
    EXPECT_NE(wide.find("ended"), std::string::npos) << "the budget of optimizer: " << wide;
}

TEST(TopScreen, ShowsTheCallStackOfTheSelectedSite) {
    TopState state = in(View::sites);
    EXPECT_TRUE(shows({}, state, "No process is chosen"));
    TopData data = made_up_data();
    EXPECT_TRUE(shows(data, state, "The names of the call stacks are being read."));
    add_profile(data, profile::name_frames(profile::testing::two_sites(), profile::Value::live));
    EXPECT_TRUE(shows(data, state,
                      "innermost call first:   lib.so+0x10   load at train.py:12   <module> at"))
        << text_of(draw(data, state, {}));
    state.position().cursor = 1;
    EXPECT_TRUE(shows(data, state, "innermost call first:   step at train.py:20   <module> at"));
    EXPECT_TRUE(shows(data, state, "innermost call first:   2 more calls", {80, 11}))
        << text_of(draw(data, state, {80, 11}));
    data.sites->now.profile.sites.clear();
    data.sites->now.profile.interval = 0;
    EXPECT_TRUE(shows(data, state, "No allocation of this process has been sampled yet."));
    EXPECT_TRUE(
        shows(data, state, "sampling is off; turn it on with tensorpool profile --interval"));
}

TEST(TopScreen, TheLargestValuesFit80Columns) {
    TopData data = made_up_data();
    data.chosen->now->pools[0].in_use_bytes = std::uint64_t{1023} << 40;
    data.chosen->now->pools[0].capacity_bytes = std::uint64_t{1023} << 40;
    add_snapshot(*data.chosen, later(*data.chosen->now, 1, 99'900'000), data.highest);
    for (const ScreenLine& line : draw(data, in(View::pools), {1000, 24})) {
        if (line.style == Style::plain && line.text.find("/s ") != std::string::npos) {
            EXPECT_LE(line.text.size(), 80u) << line.text;
        }
    }
    EXPECT_TRUE(shows(data, in(View::pools), "util 99.9%"));
}

TEST(TopScreen, ShowsWhyAProcessCannotBeRead) {
    EXPECT_TRUE(shows(made_up_data(), in(View::processes),
                      "12 (secret) cannot be read: it is another user's; use sudo"));
}

TEST(TopScreen, ReportsThatThereIsNoProcess) {
    EXPECT_TRUE(shows({}, in(View::processes), "No process with a pool is visible"));
    EXPECT_TRUE(shows({}, in(View::pools), "No process is chosen: press o"));
}

TEST(TopScreen, ReportsTheEndOfTheProcess) {
    TopData data = made_up_data();
    data.chosen->ended = true;
    EXPECT_TRUE(shows(data, in(View::pools), "The process 4711 has ended: these are its last"));
    EXPECT_TRUE(shows(data, in(View::pools), "weights"));
    data.awaited = "train";
    EXPECT_TRUE(shows(data, in(View::pools), "Waiting for a process named train."));
}

TEST(TopScreen, ShowsTheAwaitedName) {
    TopData data;
    data.awaited = "a\x1b[2J";
    EXPECT_TRUE(shows(data, in(View::processes), "Waiting for a process named a?[2J."));
}

TEST(TopScreen, LetsTheUserChooseAmongSeveralMatches) {
    TopData data = made_up_data();
    data.chosen.reset();
    data.awaited = "train";
    EXPECT_TRUE(shows(data, in(View::processes), "Waiting for a process named train."));
    data.processes.push_back(data.processes[0]);
    EXPECT_TRUE(
        shows(data, in(View::processes), "Several processes match the name train: press Enter"));
}

TEST(TopScreen, ReportsEmptyViews) {
    TopData data = made_up_data();
    data.chosen->now->scopes.clear();
    data.chosen->now->pools.clear();
    EXPECT_TRUE(
        shows(data, in(View::pools), "This process has no pool now, only arenas: press a."));
    data.chosen->now->arenas.clear();
    data.chosen->now->scratches.clear();
    EXPECT_TRUE(shows(data, in(View::scopes), "No StatisticsScope has begun in this process."));
    EXPECT_TRUE(shows(data, in(View::pools), "This process has no pool now. "));
    data.chosen->now->planned.clear();
    EXPECT_TRUE(shows(data, in(View::planned), "This process has no PlannedArena now."));
    data.chosen->now->budgets.clear();
    EXPECT_TRUE(shows(data, in(View::budgets), "This process has no Budget now."));
    data.chosen->now->devices.clear();
    EXPECT_TRUE(shows(data, in(View::devices), "This process has no allocator of device memory"));
    EXPECT_TRUE(shows(data, in(View::arenas), "This process has no arena and no scratch now."));
}

TEST(TopScreen, ReportsObjectsWithoutARecordInTheSegment) {
    TopData data = made_up_data();
    data.chosen->now->left_out["pools"] = 3;
    EXPECT_TRUE(shows(data, in(View::pools), "counted together as \"other\": 3 pools."));
    data.chosen->now->stashes.clear();
    EXPECT_TRUE(shows(data, in(View::stashes), "Nothing of this process rests now"));
    data.chosen->now->left_out["budgets"] = 4;
    EXPECT_TRUE(shows(data, in(View::pools), "4 budgets, 3 pools."));
    data.chosen->now->consistent = false;
    EXPECT_TRUE(shows(data, in(View::pools), "values may be inconsistent"));
}

TEST(TopScreen, OffersTheViewOfOtherKindsIfThereAreSome) {
    TopData data = made_up_data();
    EXPECT_FALSE(shows(data, in(View::pools), "[k]inds"));
    data.chosen->now->others.push_back(record_groups(*data.chosen->now).front());
    EXPECT_TRUE(shows(data, in(View::pools), "[k]inds"));
}

TEST(TopScreen, TheCursorIsAlwaysVisible) {
    TopData data = made_up_data();
    for (std::uint64_t i = 0; i < 100; ++i) {
        data.chosen->now->pools.push_back(data.chosen->now->pools[0]);
    }
    TopState state = in(View::pools);
    for (const std::size_t cursor : {0, 50, 101, 4000}) {
        state.position().cursor = cursor;
        const auto lines = draw(data, state, {80, 24});
        EXPECT_EQ(std::ranges::count(lines, Style::selected, &ScreenLine::style), 1) << cursor;
    }
    EXPECT_TRUE(shows(data, state, "row 102 of 102"));
}

TEST(TopScreen, ShowsTheSortColumnAndThePool) {
    TopState state = in(View::buckets);
    EXPECT_TRUE(shows(made_up_data(), state, "by BLOCKS (inverted), all pools, row 1 of 12"));
    state.pool = 2;
    EXPECT_TRUE(shows(made_up_data(), state, ", pool batches,"));
    state.pool = 77;
    EXPECT_TRUE(shows(made_up_data(), state, ", a pool that was destroyed,"));
}

TEST(TopScreen, HelpListsAllKeysOnAScreenOf80By24) {
    TopState state;
    state.help = true;
    const auto lines = draw(made_up_data(), state, {80, 24});
    EXPECT_EQ(lines.size(), 24u);
    for (const char* const key :
         {"Tab", "Enter", "< >", "r  ", "u  ", "q Ctrl-C", "HIGHEST", "any key"}) {
        EXPECT_NE(text_of(lines).find(key), std::string::npos) << key;
    }
    for (const ScreenLine& line : lines) EXPECT_LT(line.text.size(), 80u) << line.text;
}

}  // namespace
}  // namespace tensorpool::command
