#include "top/top_screen.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tools/tensorpool/made_up_data.hpp"

namespace tensorpool::command {
namespace {

/// Returns the cell in the column with this title.
std::string cell(const Table& table, std::size_t row, const std::string& title) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
        if (table.columns[column].title == title) return table.rows.at(row)[column].text;
    }
    return "no such column";
}

Table records_table(const TopData& data, View view, Sizes sizes, std::uint64_t record = 0,
                    std::uint64_t pool = 0) {
    TopState state;
    state.view = view;
    state.record = record;
    state.pool = pool;
    return records_table(data, state, sizes);
}

TEST(TopTables, OfProcessesThatCanBeRead) {
    const Table table = processes_table(made_up_data(), Sizes::iec);
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(cell(table, 0, "NAME"), "train");
    EXPECT_EQ(cell(table, 0, "PID"), "4711");
    EXPECT_EQ(cell(table, 0, "IN USE"), "116 MiB");
    EXPECT_EQ(cell(table, 0, "ALLOC/s"), "2500");
    EXPECT_EQ(cell(table, 0, "DEV USE"), "300 MiB");
    EXPECT_EQ(cell(table, 0, "DEV CAP"), "640 MiB");
    EXPECT_EQ(table.keys, (std::vector<std::string>{"4711"}));
}

TEST(TopTables, OfPools) {
    const Table table = records_table(made_up_data(), View::pools, Sizes::iec);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(cell(table, 0, "NAME"), "weights");
    EXPECT_EQ(cell(table, 0, "HIGHEST"), "100 MiB");
    EXPECT_EQ(cell(table, 0, "UTIL"), "50.0%");
    EXPECT_EQ(cell(table, 0, "ALLOC/s"), "2500");
    EXPECT_EQ(cell(table, 0, "LIMIT"), "none");
    EXPECT_EQ(cell(table, 1, "LIMIT"), "64.0 MiB");
    EXPECT_EQ(cell(table, 1, "ALLOC/s"), "0");
}

TEST(TopTables, OfBucketsOfOnePoolOrOfAll) {
    const Table all = buckets_table(made_up_data(), 0, Sizes::iec);
    const Table one = buckets_table(made_up_data(), 2, Sizes::iec);
    ASSERT_EQ(all.rows.size(), 12u);
    EXPECT_EQ(cell(all, 4, "BLOCKS"), "1.00 KiB");
    EXPECT_EQ(cell(all, 4, "IN USE"), "200 KiB");
    EXPECT_EQ(cell(all, 4, "WASTE"), "25.0%");
    EXPECT_EQ(cell(all, 4, "ALLOC/s"), "2500");
    EXPECT_EQ(cell(one, 4, "IN USE"), "100 KiB");
    EXPECT_EQ(cell(one, 4, "FREE"), "100 KiB");
    EXPECT_EQ(cell(one, 4, "ALLOC/s"), "0");
    EXPECT_EQ(cell(one, 11, "BLOCKS"), "large");
    EXPECT_EQ(cell(one, 11, "UTIL"), "-");  // without capacity
}

TEST(TopTables, InconsistentValuesDoNotWrapAround) {
    TopData data = made_up_data();
    data.chosen->now->pools[0].buckets[4].in_use_bytes = std::uint64_t{1} << 40;
    data.chosen->now->pools[0].buckets[4].allocations = 1;
    data.chosen->now->pools[0].buckets[4].requested_bytes = std::uint64_t{1} << 40;
    const Table table = buckets_table(data, 1, Sizes::iec);
    EXPECT_EQ(cell(table, 4, "FREE"), "0");
    EXPECT_EQ(cell(table, 4, "ALLOC/s"), "0");
    EXPECT_EQ(cell(table, 4, "WASTE"), "0.0%");
}

TEST(TopTables, OfScopes) {
    const Table table = records_table(made_up_data(), View::scopes, Sizes::iec);
    EXPECT_EQ(cell(table, 0, "SCOPE"), "forward");
    EXPECT_EQ(cell(table, 0, "GROWTH"), "-1.95 KiB");
    EXPECT_EQ(cell(table, 0, "BYTES/CALL"), "100 B");
}

TEST(TopTables, OfThreadsWithTheirPool) {
    const Table table = records_table(made_up_data(), View::threads, Sizes::iec, 0, 1);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(cell(table, 0, "THREAD"), "main");
    EXPECT_EQ(cell(table, 0, "POOL"), "weights");
    EXPECT_EQ(cell(table, 0, "ALLOC/s"), "2500");
    EXPECT_EQ(cell(table, 1, "PARKED"), "1.00 KiB");
    EXPECT_TRUE(records_table(made_up_data(), View::threads, Sizes::iec, 0, 2).rows.empty());
}

TEST(TopTables, OfArenasAndScratches) {
    const Table table = records_table(made_up_data(), View::arenas, Sizes::iec);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(cell(table, 0, "KIND"), "growing");
    EXPECT_EQ(cell(table, 1, "KIND"), "scratch");
    EXPECT_EQ(cell(table, 1, "HIGHEST"), "3.00 MiB");
}

TEST(TopTables, OfPlannedArenas) {
    TopData data = made_up_data();
    const Table table = records_table(data, View::planned, Sizes::iec);
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(cell(table, 0, "NAME"), "step");
    EXPECT_EQ(cell(table, 0, "STATE"), "serving");
    EXPECT_EQ(cell(table, 0, "BOUND"), "100 MiB");
    EXPECT_EQ(cell(table, 0, "POOL"), "125 MiB");
    EXPECT_EQ(cell(table, 0, "PLAN"), "101 MiB");
    EXPECT_EQ(cell(table, 0, "ABOVE"), "1.0%");
    EXPECT_EQ(cell(table, 0, "SERVED"), "990");
    EXPECT_EQ(cell(table, 0, "MISSED"), "5");
    EXPECT_EQ(cell(table, 0, "LARGE"), "3");
    EXPECT_EQ(table.keys, (std::vector<std::string>{"7"}));
    data.chosen->now->planned[0].plan_peak_bytes = 0;
    EXPECT_EQ(cell(records_table(data, View::planned, Sizes::iec), 0, "PLAN"), "-") << "it learns";
    EXPECT_EQ(cell(records_table(data, View::planned, Sizes::iec), 0, "ABOVE"), "-");
    data.chosen.reset();
    EXPECT_TRUE(records_table(data, View::planned, Sizes::iec).rows.empty());
}

TEST(TopTables, OfDeviceAllocators) {
    const Table table = records_table(made_up_data(), View::devices, Sizes::iec);
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(cell(table, 0, "NAME"), "activations");
    EXPECT_EQ(cell(table, 0, "DEVICE"), "cuda:0");
    EXPECT_EQ(cell(table, 0, "IN USE"), "300 MiB");
    EXPECT_EQ(cell(table, 0, "CAPACITY"), "640 MiB");
    EXPECT_EQ(cell(table, 0, "FREE"), "320 MiB");
    EXPECT_EQ(cell(table, 0, "DEFERRED"), "20.0 MiB");
    EXPECT_EQ(cell(table, 0, "HITS"), "99.8%");
    EXPECT_EQ(cell(table, 0, "ALLOC/s"), "2500");
    EXPECT_EQ(cell(table, 0, "LIMIT"), "none");
    EXPECT_EQ(cell(table, 0, "KIND"), "caching");
    EXPECT_EQ(table.keys, (std::vector<std::string>{"5"}));
}

TEST(TopTables, OfOneDeviceAllocatorHavePyTorchsNamesBesideOurs) {
    const Table table = records_table(made_up_data(), View::devices, Sizes::iec, 5);
    EXPECT_EQ(cell(table, 0, "NAME"), "id");
    EXPECT_EQ(cell(table, 0, "VALUE"), "5");
    EXPECT_EQ(cell(table, 1, "NAME"), "in_use_bytes");
    EXPECT_EQ(cell(table, 1, "PYTORCH"), "allocated_bytes.all.current");
    EXPECT_EQ(cell(table, 1, "VALUE"), "300 MiB");
    EXPECT_EQ(cell(table, 2, "PYTORCH"), "allocated_bytes.all.peak");
    EXPECT_EQ(cell(table, 2, "VALUE"), "500 MiB");
    EXPECT_EQ(cell(table, 6, "PYTORCH"), "reserved_bytes.all.current");
    EXPECT_EQ(cell(table, 6, "VALUE"), "640 MiB");
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
    EXPECT_TRUE(records_table(made_up_data(), View::devices, Sizes::iec, 9).rows.empty())
        << "destroyed";
}

TEST(TopTables, OfOneRecordShowAllOfItsValues) {
    const Table table = records_table(made_up_data(), View::arenas, Sizes::iec, 4);
    ASSERT_EQ(table.columns.size(), 2u) << "no value has a name of PyTorch's";
    EXPECT_EQ(table.rows.size(), 15u);
    EXPECT_EQ(cell(table, 4, "NAME"), "used_bytes");
    EXPECT_EQ(cell(table, 4, "VALUE"), "3.00 MiB");
}

TEST(TopTables, OfEventsNewestFirst) {
    TopState state;
    state.view = View::events;
    const Table table = table_of(made_up_data(), state);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(cell(table, 0, "WHAT"), "limit");
    EXPECT_EQ(cell(table, 0, "TIME (UTC)"), "22:13:21.000");
    EXPECT_EQ(cell(table, 1, "NAME"), "weights");
}

TEST(TopTables, NamesOfAnotherProcessCannotControlTheTerminal) {
    TopData data = made_up_data();
    std::strcpy(data.chosen->now->pools[0].name, "\x1b[2J");
    std::strcpy(data.chosen->now->scopes[0].name, "\x1b[2J");
    data.chosen->now->threads[0].name = "\x1b[2J";
    std::strcpy(data.chosen->now->planned[0].name, "\x1b[2J");
    std::strcpy(data.chosen->now->budgets[1].name, "\x1b[2J");
    std::strcpy(data.chosen->now->stashes[1].name, "\x1b[2J");
    std::strcpy(data.chosen->now->devices[0].name, "\x1b[2J");
    std::strcpy(data.chosen->now->devices[0].device, "\x1b[2J");
    data.entries[0].name = "\x1b[2J";
    for (const Table& table :
         {records_table(data, View::pools, Sizes::iec),
          records_table(data, View::scopes, Sizes::iec),
          records_table(data, View::threads, Sizes::iec),
          records_table(data, View::devices, Sizes::iec), events_table(data, Sizes::iec),
          records_table(data, View::planned, Sizes::iec),
          records_table(data, View::budgets, Sizes::iec),
          records_table(data, View::stashes, Sizes::iec)}) {
        for (const std::string& line : lay_out(table, 200)) {
            EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
        }
    }
}

TEST(TopTables, AreEmptyWithoutAProcess) {
    TopState state;
    for (unsigned view = 0; view < view_count; ++view) {
        state.view = static_cast<View>(view);
        EXPECT_TRUE(table_of({}, state).rows.empty()) << view;
    }
}

}  // namespace
}  // namespace tensorpool::command
