#include "inspect/analysis.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::inspect {
namespace {

using trace::testing::MadeRecording;

TEST(Analysis, FindsThePeakBySourceAndScope) {
    MadeRecording made;
    const auto arena = made.source(TraceSource::arena, "frame");
    const auto scope = made.source(TraceSource::scope, "forward");
    made.allocate(0x10000, 1000);  // 1,024 in a bucket
    made.begin_scope(scope);
    made.allocate(0x20000, 5000);  // 8,192
    made.call(TraceAction::arena_allocate, 0x90000, 300, arena);
    made.end_scope(scope);
    made.deallocate(0x20000, 8192);
    made.allocate(0x20000, 200);  // 256
    const Analysis analysis = analyse(made.recording(), 10);
    const Level& peak = analysis.timeline.peak.level;
    EXPECT_EQ(analysis.timeline.peak_call, 3U);
    EXPECT_EQ(analysis.timeline.peak.time_ns, 3000U);
    EXPECT_EQ(peak.blocks, 3U);
    EXPECT_EQ(peak.alive_bytes, 6300U);
    EXPECT_EQ(peak.block_bytes, 1024U + 8192U + 300U);
    EXPECT_EQ(peak.page_bytes, 4096U + 8192U + 4096U);
    EXPECT_EQ(peak.used_bytes, 1024U + 8192U + 300U);
    ASSERT_EQ(analysis.at_peak.by_source.size(), 2U);
    EXPECT_EQ(analysis.at_peak.by_source[0].name, "global (pool)");
    EXPECT_EQ(analysis.at_peak.by_source[0].bytes, 6000U);
    EXPECT_EQ(analysis.at_peak.by_source[0].block_bytes, 9216U);
    EXPECT_EQ(analysis.at_peak.by_source[0].blocks, 2U);
    EXPECT_EQ(analysis.at_peak.by_source[1].name, "frame (arena)");
    EXPECT_EQ(analysis.at_peak.by_source[1].bytes, 300U);
    ASSERT_EQ(analysis.at_peak.by_scope.size(), 2U);
    EXPECT_EQ(analysis.at_peak.by_scope[0].name, "forward");
    EXPECT_EQ(analysis.at_peak.by_scope[0].bytes, 5300U);
    EXPECT_EQ(analysis.at_peak.by_scope[1].name, "[outside of scopes]");
    EXPECT_EQ(analysis.at_peak.bytes, 6300U);
}

TEST(Analysis, CountsTotals) {
    MadeRecording made;
    made.allocate(0x10000, 1000);
    made.call(TraceAction::refuse, 0, 1 << 30);
    made.allocate(0x20000, 70'000);
    made.call(TraceAction::resize, 0x20000, 68'000);
    made.recording().processes[0].dropped = 4;
    made.recording().cut_bytes = 5;
    const Analysis analysis = analyse(made.recording(), 10);
    EXPECT_EQ(analysis.totals.calls, 4U);
    EXPECT_EQ(analysis.totals.allocations, 2U);
    EXPECT_EQ(analysis.totals.allocated_bytes, 71'000U);
    EXPECT_EQ(analysis.totals.refusals, 1U);
    EXPECT_EQ(analysis.totals.duration_ns, 3000U);
    EXPECT_EQ(analysis.totals.dropped, 4U);
    EXPECT_EQ(analysis.totals.cut_bytes, 5U);
}

TEST(Analysis, CountsOlderBlocksFromTheFirstCallOn) {
    MadeRecording made;
    made.allocate(0x10000, 10);
    made.deallocate(0x50000, 4096);
    const Analysis analysis = analyse(made.recording(), 10);
    EXPECT_EQ(analysis.timeline.peak.level.alive_bytes, 4106U);
    ASSERT_EQ(analysis.at_peak.by_scope.size(), 2U);
    EXPECT_EQ(analysis.at_peak.by_scope[0].name, "[before the recording]");
    EXPECT_EQ(analysis.totals.allocations, 1U);
}

TEST(Analysis, FindsAPeakBeforeTheFirstCall) {
    MadeRecording made;
    made.deallocate(0x50000, 4096);
    made.allocate(0x10000, 10);
    const Analysis analysis = analyse(made.recording(), 10);
    EXPECT_EQ(analysis.timeline.peak_call, Lifetime::none);
    EXPECT_EQ(analysis.at_peak.bytes, 4096U);
}

TEST(Analysis, ReportsBlocksLeftByCompleteRecordings) {
    MadeRecording made;
    const auto second = made.process("killed", 8);
    made.recording().processes[second].ended = false;
    const auto thread = made.thread(second, 80);
    const auto pool = made.source(TraceSource::pool, "global", second);
    made.allocate(0x10000, 100);
    made.allocate(0x20000, 50);
    made.deallocate(0x20000, 64);
    made.allocate(0x10000, 7, pool).thread = thread;
    const Analysis analysis = analyse(made.recording(), 10);
    EXPECT_TRUE(analysis.any_ended);
    EXPECT_EQ(analysis.left.bytes, 100U);
    EXPECT_EQ(analysis.left.blocks, 1U);
    ASSERT_EQ(analysis.processes.size(), 2U);
    EXPECT_EQ(analysis.processes[0].peak_bytes, 150U);
    EXPECT_EQ(analysis.processes[0].calls, 3U);
    EXPECT_EQ(analysis.processes[1].peak_bytes, 7U);
    EXPECT_EQ(analysis.processes[1].threads, 1U);
    // The pools of two processes have the same name, so they are one group.
    ASSERT_EQ(analysis.timeline.sources.size(), 1U);
}

TEST(Analysis, CountsBlocksInUseWhenTheirPoolEnded) {
    MadeRecording made;
    made.allocate(0x10000, 100);
    made.call(TraceAction::gone, 0, 0);
    const Analysis analysis = analyse(made.recording(), 10);
    EXPECT_EQ(analysis.gone_blocks, 1U);
    EXPECT_EQ(analysis.gone_bytes, 100U);
    EXPECT_EQ(analysis.left.blocks, 0U);
}

TEST(Analysis, RanksSizes) {
    MadeRecording made;
    std::uint64_t address = 0x100000;
    for (int i = 0; i < 5; ++i) made.allocate(address += 0x10000, 10);
    for (int i = 0; i < 2; ++i) made.allocate(address += 0x10000, 1000);
    made.allocate(address += 0x10000, 500);
    const Analysis analysis = analyse(made.recording(), 2);
    ASSERT_EQ(analysis.sizes_by_bytes.size(), 2U);
    EXPECT_EQ(analysis.sizes_by_bytes[0].bytes, 1000U);
    EXPECT_EQ(analysis.sizes_by_bytes[0].requests, 2U);
    EXPECT_EQ(analysis.sizes_by_bytes[0].total(), 2000U);
    EXPECT_EQ(analysis.sizes_by_bytes[1].bytes, 500U);
    EXPECT_EQ(analysis.sizes_by_requests[0].bytes, 10U);
    EXPECT_EQ(analysis.sizes_by_requests[0].requests, 5U);
}

TEST(Analysis, GroupsLifetimesByPowersOfTen) {
    MadeRecording made;
    made.allocate(0x10000, 1);
    made.deallocate(0x10000, 64).time_ns = 999;
    made.allocate(0x10000, 2).time_ns = 1000;
    made.deallocate(0x10000, 64).time_ns = 2000;  // 1 us
    made.allocate(0x10000, 3).time_ns = 3000;
    made.deallocate(0x10000, 64).time_ns = 200'000'003'000;  // 200 s
    made.allocate(0x10000, 4);                               // alive at the end
    const Lifetimes lifetimes = analyse(made.recording(), 10).lifetimes;
    ASSERT_EQ(lifetimes.by_time.size(), 10U);
    EXPECT_EQ(lifetimes.by_time[0].blocks, 1U);
    EXPECT_EQ(lifetimes.by_time[0].bytes, 1U);
    EXPECT_EQ(lifetimes.by_time[1].from, 1000U);
    EXPECT_EQ(lifetimes.by_time[1].blocks, 1U);
    EXPECT_EQ(lifetimes.by_time[1].bytes, 2U);
    EXPECT_EQ(lifetimes.by_time[9].from, 100'000'000'000U);
    EXPECT_EQ(lifetimes.by_time[9].bytes, 3U);
    EXPECT_EQ(lifetimes.by_calls[0].blocks, 3U);
}

TEST(Analysis, CountsAResizedBlockOnce) {
    MadeRecording made;
    made.allocate(0x10000, 90'000);
    for (int i = 0; i < 9; ++i) made.call(TraceAction::refuse, 0, 1);
    made.call(TraceAction::resize, 0x10000, 80'000);
    made.deallocate(0x10000, 98'304);
    const Lifetimes lifetimes = analyse(made.recording(), 10).lifetimes;
    EXPECT_EQ(lifetimes.by_calls[0].blocks, 0U);
    EXPECT_EQ(lifetimes.by_calls[1].blocks, 1U);
    EXPECT_EQ(lifetimes.by_calls[1].bytes, 80'000U);
}

TEST(Analysis, EstimatesSitesFromSamples) {
    MadeRecording made;
    made.recording().processes[0].stack_interval = 1000;
    const auto module = made.module("/nowhere/program");
    const auto one = made.stack({{module, 0x10}, {module, 0x99}});
    const auto same_site = made.stack({{module, 0x10}, {module, 0x77}});
    made.allocate(0x10000, 500).stack = one;
    made.allocate(0x20000, 2000).stack = same_site;
    made.allocate(0x30000, 9000);
    const Analysis analysis = analyse(made.recording(), 10);
    const Sites& sites = analysis.at_peak.by_site;
    EXPECT_EQ(sites.samples, 2U);
    ASSERT_EQ(sites.largest.size(), 1U);
    const double small = 1 / (1 - std::exp(-0.5));
    const double large = 1 / (1 - std::exp(-2.0));
    EXPECT_EQ(sites.largest[0].name, "program+0x10");
    EXPECT_NEAR(sites.largest[0].blocks, small + large, 1e-9);
    EXPECT_NEAR(sites.largest[0].bytes, 500 * small + 2000 * large, 1e-6);
    const std::vector<std::string> stack = {"program+0x10", "program+0x77"};
    EXPECT_EQ(sites.largest[0].stack, stack);
    ASSERT_EQ(analysis.code_problems.size(), 1U);
    EXPECT_EQ(analysis.code_problems[0], "/nowhere/program: No such file or directory");
}

}  // namespace
}  // namespace tensorpool::command::inspect
