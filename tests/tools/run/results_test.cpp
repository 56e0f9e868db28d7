#include "formats/launch/launch.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::launch {
namespace {

ProcessSnapshot with_peak(std::uint64_t process, std::uint64_t peak_bytes) {
    ProcessSnapshot snapshot;
    snapshot.process = process;
    PoolStatistics pool;
    pool.peak_in_use_bytes = peak_bytes;
    pool.allocations = 3;
    snapshot.pools.push_back(pool);
    return snapshot;
}

TEST(Results, KeepTheLargestInOrder) {
    Results results;
    for (const std::uint64_t peak : {5, 9, 7, 9}) results.add(with_peak(peak, peak), true);
    ASSERT_EQ(results.largest().size(), 4U);
    EXPECT_EQ(results.largest()[0].totals.peak_bytes, 9U);
    EXPECT_EQ(results.largest()[2].snapshot.process, 7U);
    EXPECT_EQ(results.largest()[3].snapshot.process, 5U);
    EXPECT_EQ(results.others(), 0U);
}

TEST(Results, SumTheSmallestOfThousands) {
    Results results;
    for (std::uint64_t i = 1; i <= 5000; ++i) results.add(with_peak(i, i), i % 2 == 0);
    EXPECT_EQ(results.processes(), 5000U);
    EXPECT_EQ(results.largest().size(), 20U);
    EXPECT_EQ(results.largest().front().snapshot.process, 5000U);
    EXPECT_EQ(results.largest().back().snapshot.process, 4981U);
    EXPECT_FALSE(results.largest().back().has_ended);
    EXPECT_EQ(results.others(), 4980U);
    EXPECT_EQ(results.totals_of_others().peak_bytes, 4980U * 4981 / 2);
    EXPECT_EQ(results.totals_of_others().allocations, 3U * 4980);
}

TEST(Results, NotesCountProgramsAndKeepEachReasonOnce) {
    Results results;
    for (int i = 0; i < 3; ++i) results.add_note("numpy\nanother \x1b Python");
    results.add_note("numpy");
    results.add_note("malloc");
    results.add_note("unknown note");
    for (int i = 0; i < 100; ++i) results.add_note("torch\n" + std::to_string(i));
    EXPECT_EQ(results.notes(Part::numpy).programs, 1U);
    EXPECT_EQ(results.notes(Part::numpy).problems, (std::vector<std::string>{"another ? Python"}));
    EXPECT_EQ(results.notes(Part::malloc).programs, 1U);
    EXPECT_EQ(results.notes(Part::torch).problems.size(), 5U);
}

}  // namespace
}  // namespace tensorpool::command::launch
