#include <gtest/gtest.h>

#include <span>

#include "tools/export/exported.hpp"
#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::export_ {
namespace {

using trace::testing::MadeRecording;

std::string log_of(MadeRecording& made) {
    const History history(made.recording());
    return testing::written([&](WrittenFile& file) { write_rmm_log(history, file); });
}

Recording read_back(const std::string& text) {
    return trace::read_recording(std::as_bytes(std::span(text)), "log");
}

TEST(RmmExport, WritesRmmsFormat) {
    MadeRecording made;
    made.recording().begun_unix_ns = 86'399'500'000'000;  // half a second before midnight
    made.allocate(0x7f0000000000, 1000);
    made.call(TraceAction::refuse, 0, 5000);
    made.deallocate(0x7f0000000000, 1024);
    EXPECT_EQ(log_of(made),
              "Thread,Time,Action,Pointer,Size,Stream\n"
              "70,23:59:59.500000,allocate,0x7f0000000000,1000,0x0\n"
              "70,23:59:59.500001,allocate failure,0x0,5000,0x0\n"
              "70,23:59:59.500002,free,0x7f0000000000,1000,0x0\n");
}

TEST(RmmExport, IsReadBackAsTheSameLifetimes) {
    MadeRecording made;
    const auto arena = made.source(TraceSource::arena, "frame");
    const auto thread = made.thread(0, 71);
    made.deallocate(0x90000, 4096);  // made before the recording
    made.allocate(0x10000, 1000);
    made.allocate(0x20000, 90'000).thread = thread;
    made.call(TraceAction::resize, 0x20000, 80'000);
    made.call(TraceAction::arena_mark, 0x30000, 0x30000, arena);
    made.call(TraceAction::arena_allocate, 0x30000, 300, arena);
    made.call(TraceAction::arena_allocate, 0x30200, 400, arena);
    made.call(TraceAction::arena_release, 0x30000, 0x30000, arena);
    made.deallocate(0x20000, 98'304);
    const auto before = trace::lifetimes_of(made.recording());
    const Recording again = read_back(log_of(made));
    const auto after = trace::lifetimes_of(again);
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(after[i].address, before[i].address) << i;
        EXPECT_EQ(after[i].bytes, before[i].bytes) << i;
        EXPECT_EQ(after[i].end == Lifetime::none, before[i].end == Lifetime::none) << i;
    }
    EXPECT_EQ(again.threads.size(), 2U);
}

TEST(RmmExport, SeparatesBlocksOfProcesses) {
    MadeRecording made;
    const std::uint32_t child = made.process("child", 8);
    const std::uint32_t thread = made.thread(child, 80);
    const std::uint32_t pool = made.source(TraceSource::pool, "global", child);
    made.allocate(0x10000, 1000);
    made.allocate(0x10000, 2000, pool).thread = thread;
    made.deallocate(0x10000, 1024);
    const Recording again = read_back(log_of(made));
    const auto lifetimes = trace::lifetimes_of(again);
    ASSERT_EQ(lifetimes.size(), 2U);
    EXPECT_EQ(lifetimes[0].address, 0x10000U);
    EXPECT_EQ(lifetimes[0].end, 2U);
    EXPECT_EQ(lifetimes[1].address, 0x1000000010000U);
    EXPECT_EQ(lifetimes[1].end, Lifetime::none);
}

TEST(RmmExport, LimitsSizesToTheAddressSpace) {
    MadeRecording made;
    made.allocate(UINT64_MAX - 10, 5000);
    EXPECT_EQ(read_back(log_of(made)).calls.size(), 1U);
}

TEST(RmmExport, SeparatesBlocksOfDevicesAndWritesStreams) {
    MadeRecording made;
    const std::uint32_t device = made.source(TraceSource::device, "weights");
    made.allocate(0x10000, 1000);
    made.recording().streams.push_back(0x7f40);
    made.allocate(0x10000, 2000, device).stream = 1;
    made.deallocate(0x10000, 2048, device);
    const std::string log = log_of(made);
    EXPECT_NE(log.find("allocate,0x1000000010000,2000,0x7f40\n"), std::string::npos) << log;
    EXPECT_NE(log.find("free,0x1000000010000,2000,0x7f40\n"), std::string::npos) << log;
    const auto lifetimes = trace::lifetimes_of(read_back(log));
    ASSERT_EQ(lifetimes.size(), 2U);
    EXPECT_EQ(lifetimes[0].end, Lifetime::none);
}

}  // namespace
}  // namespace tensorpool::command::export_
